#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace deft::cli {

/// The files that a command reads and writes: no output may replace an input under any name. Register each
/// file as soon as it is known. Then whichever comes second is refused before anything is written. Pipes and
/// devices may be both.
class FilesInUse {
public:
  support::Result<void> reads(const std::string &path);
  /// Registers all files of a folder.
  support::Result<void> readsFolder(const std::string &folder);
  /// An empty path and `-` are not files.
  support::Result<void> writes(const std::string &path);
  /// For output files with names that are not known yet: the folder must not contain an input.
  support::Result<void> writesInto(const std::string &folder) const;

private:
  /// A file by its identity and by its path: links may lead to it under another name, and another file may
  /// replace it in the meantime.
  struct File {
    std::string path; ///< as the user gave it
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
