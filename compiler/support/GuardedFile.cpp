#include "compiler/support/GuardedFile.h"

#include "compiler/support/Descriptor.h"

#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace deft::support {
namespace {

/// Why it is not this user's alone; empty: it is.
std::string faultOfOwner(const struct stat &info) {
  if (info.st_uid != ::geteuid())
    return "it belongs to user " + std::to_string(info.st_uid) + ", not to " + std::to_string(::geteuid());
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return "other users may write it";
  return {};
}

std::string faultOfFolder(const struct stat &info) {
  return S_ISDIR(info.st_mode) ? faultOfOwner(info) : "it is not a folder";
}

GuardedFile failed(GuardedFile::State state, std::string fault) { return {state, {}, std::move(fault)}; }

GuardedFile systemFault() {
  const bool isAbsent = errno == ENOENT || errno == ENOTDIR;
  return failed(isAbsent ? GuardedFile::State::Absent : GuardedFile::State::Unreadable, std::strerror(errno));
}

GuardedFile readAt(int folder, const char *name, int flags, std::size_t maxBytes, Trust trust) {
  using State = GuardedFile::State;
  // O_NONBLOCK: opening a pipe in the place of a file must not hang the process.
  const Descriptor file(::openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags));
  struct stat info{};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return systemFault();
  if (S_ISDIR(info.st_mode))
    return failed(State::Unreadable, "it is a folder");
  if (!S_ISREG(info.st_mode))
    return failed(State::Unreadable, "it is a pipe or a device, not a regular file");
  if (trust == Trust::Private)
    if (std::string fault = faultOfOwner(info); !fault.empty())
      return failed(State::Untrusted, std::move(fault));
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > maxBytes)
    return failed(State::Unreadable, "it has " + std::to_string(size) + " bytes, more than the limit of " +
                                         std::to_string(maxBytes));
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemFault();
    if (got == 0) // somebody cut it meanwhile
      break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return {State::Read, std::move(bytes), {}};
}

} // namespace

std::string faultOfPrivateFolder(const std::string &path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? faultOfFolder(info) : std::strerror(errno);
}

bool isPrivateFolder(int folder) {
  struct stat info{};
  return ::fstat(folder, &info) == 0 && faultOfFolder(info).empty();
}

std::string makePrivateFolder(const std::string &path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string prefix = path.substr(0, slash);
    if (::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      // A read-only or foreign parent that already has the folder is no obstacle.
      const int why = errno;
      struct stat info{};
      if (::stat(prefix.c_str(), &info) != 0)
        return std::strerror(why);
    }
    if (slash == std::string::npos)
      break;
  }
  return faultOfPrivateFolder(path);
}

GuardedFile readGuarded(const std::string &path, std::size_t maxBytes, Trust trust) {
  return readAt(AT_FDCWD, path.c_str(), 0, maxBytes, trust);
}

GuardedFile readGuardedIn(int folder, const char *name, std::size_t maxBytes, Trust trust) {
  return readAt(folder, name, O_NOFOLLOW, maxBytes, trust);
}

} // namespace deft::support
