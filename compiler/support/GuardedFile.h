#pragma once

#include <cstddef>
#include <string>
#include <sys/stat.h>

/// Files that are read because of where they lie, as those of a cache are: whoever else may write there must
/// not decide what is read, nor whether the reader ever comes back.
namespace deft::support {

/// As much as any file of a cache has.
inline constexpr std::size_t kMostCachedBytes = std::size_t{64} << 20;

/// Why `path` is no folder that belongs to this user and that nobody else may write; empty: it is one. A link
/// is none, whatever it leads to.
std::string faultOfPrivateFolder(const std::string &path);

/// Makes `path` and its missing parents, 0700, and says the same.
std::string makePrivateFolder(const std::string &path);

enum class Trust {
  Anyone,    ///< somebody names the file
  NotPublic, ///< likewise, and not everybody may write it
  Private,   ///< it has to belong to this user, nobody else may write it, and it is no link
};

/// Why an open file is not to be trusted so; empty: it is. That it was not opened through a link is for who
/// opens it.
std::string faultOfTrust(const struct stat &info, Trust trust);

struct GuardedFile {
  enum class State { Read, Absent, Unreadable, Untrusted } state = State::Absent;
  std::string bytes; ///< of one that was read
  std::string fault; ///< of any other: why
};

/// A regular file of at most `maxBytes`, whole. With `folder`, an open one, `name` is looked up in it and
/// must be no link.
GuardedFile readGuarded(const std::string &path, std::size_t maxBytes, Trust trust);
GuardedFile readGuardedIn(int folder, const char *name, std::size_t maxBytes, Trust trust);

/// Whether the open folder is one of faultOfPrivateFolder().
bool isPrivateFolder(int folder);

} // namespace deft::support
