#pragma once

#include <cstddef>
#include <string>
#include <sys/stat.h>

/// Reads files that are trusted because of their place, such as those of a cache. Other users who may write
/// there must not control the contents that are read, and must not make the reader wait forever.
namespace deft::support {

/// Larger than any file of a cache.
inline constexpr std::size_t kMostCachedBytes = std::size_t{64} << 20;

/// The reason why `path` is not a folder that belongs to this user and that only this user may write; empty:
/// it is. A link never is.
std::string faultOfPrivateFolder(const std::string &path);

/// Creates `path` and its missing parents with mode 0700, and then returns the same.
std::string makePrivateFolder(const std::string &path);

enum class Trust {
  Anyone,    ///< the user named the file
  NotPublic, ///< the user named the file, but not everybody may write it
  Private,   ///< it belongs to this user, only this user may write it, and it is no link
};

/// The reason why an open file does not have this trust; empty: it does. The caller must make sure that it
/// was not opened through a link.
std::string faultOfTrust(const struct stat &info, Trust trust);

struct GuardedFile {
  enum class State { Read, Absent, Unreadable, Untrusted } state = State::Absent;
  std::string bytes; ///< if Read
  std::string fault; ///< otherwise the reason
};

/// Reads a whole regular file of at most `maxBytes`. With `folder`, an open folder, `name` is looked up there
/// and must not be a link.
GuardedFile readGuarded(const std::string &path, std::size_t maxBytes, Trust trust);
GuardedFile readGuardedIn(int folder, const char *name, std::size_t maxBytes, Trust trust);

/// Whether the open folder satisfies faultOfPrivateFolder().
bool isPrivateFolder(int folder);

} // namespace deft::support
