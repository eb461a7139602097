#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace deft::cli {

/// The files that a command reads and those that it writes: no output may take the place of an input, under
/// whatever name. Both are told as soon as they are known, so that the one that comes second is refused
/// before anything is written. Pipes and devices may be both.
class FilesInUse {
public:
  support::Result<void> reads(const std::string &path);
  /// All files of a folder.
  support::Result<void> readsFolder(const std::string &folder);
  /// An empty path and `-` are no files.
  support::Result<void> writes(const std::string &path);
  /// Files whose names are not known yet, into a folder that holds no input.
  support::Result<void> writesInto(const std::string &folder) const;

private:
  /// A file by what it is and by where it is: a name may lead to it through links, and what is there may be
  /// replaced meanwhile.
  struct File {
    std::string path; ///< as it was given
    std::string canonical;
    bool exists = false;
    dev_t device = 0;
    ino_t inode = 0;

    static File at(const std::string &path);
    bool isSame(const File &other) const;
  };

  std::vector<File> inputs_, outputs_;
};

} // namespace deft::cli
