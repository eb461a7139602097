#include "compiler/support/GuardedFile.h"

#include "compiler/support/OpenedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

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
  if (S_ISLNK(info.st_mode))
    return "it is a link, which is not followed here";
  return S_ISDIR(info.st_mode) ? faultOfOwner(info) : "it is not a folder";
}

GuardedFile failed(GuardedFile::State state, std::string fault) { return {state, {}, std::move(fault)}; }

GuardedFile readAt(int folder, const char *name, Links links, std::size_t maxBytes, Trust trust) {
  using State = GuardedFile::State;
  OpenedFile opened = openRegular(folder, name, links);
  if (!opened.fault.empty())
    return failed(opened.isAbsent ? State::Absent : State::Unreadable, std::move(opened.fault));
  if (std::string fault = faultOfTrust(opened.info, trust); !fault.empty())
    return failed(State::Untrusted, std::move(fault));
  if (const auto size = static_cast<std::size_t>(opened.info.st_size); size > maxBytes)
    return failed(State::Unreadable, "it has " + std::to_string(size) + " bytes, more than the limit of " +
                                         std::to_string(maxBytes));
  auto bytes = readOpened(opened.file.get(), name, maxBytes);
  if (!bytes)
    return failed(State::Unreadable, bytes.error().message);
  return {State::Read, std::move(*bytes), {}};
}

} // namespace

std::string faultOfTrust(const struct stat &info, Trust trust) {
  switch (trust) {
  case Trust::Anyone:
    break;
  case Trust::NotPublic:
    return (info.st_mode & S_IWOTH) != 0 ? "anyone may write it" : "";
  case Trust::Private:
    return faultOfOwner(info);
  }
  return {};
}

std::string faultOfPrivateFolder(const std::string &path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? faultOfFolder(info) : std::strerror(errno);
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
  return readAt(AT_FDCWD, path.c_str(), trust == Trust::Private ? Links::Refused : Links::Followed, maxBytes,
                trust);
}

GuardedFile readGuardedIn(int folder, const char *name, std::size_t maxBytes, Trust trust) {
  return readAt(folder, name, Links::Refused, maxBytes, trust);
}

} // namespace deft::support
