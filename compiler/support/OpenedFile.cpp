#include "compiler/support/OpenedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace deft::support {
namespace {

/// Empty: it is a regular file.
std::string faultOfKind(mode_t mode) {
  if (S_ISREG(mode))
    return {};
  if (S_ISDIR(mode))
    return "it is a folder";
  return std::string(S_ISFIFO(mode)   ? "it is a pipe"
                     : S_ISSOCK(mode) ? "it is a socket"
                                      : "it is a device") +
         ", not a file";
}

OpenedFile open(int folder, const char *name, Links links) {
  OpenedFile opened;
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (links == Links::Refused ? O_NOFOLLOW : 0);
  opened.file = Descriptor(::openat(folder, name, flags));
  if (opened.file.get() >= 0 && ::fstat(opened.file.get(), &opened.info) == 0)
    return opened;
  opened.isAbsent = errno == ENOENT || errno == ENOTDIR;
  opened.fault = std::strerror(errno);
  if (errno == ELOOP && links == Links::Refused)
    opened.fault = "it is a link, which is not followed here";
  else if (::fstatat(folder, name, &opened.info, 0) == 0 && S_ISSOCK(opened.info.st_mode))
    opened.fault = faultOfKind(opened.info.st_mode); // it cannot even be opened
  return opened;
}

bool isNameOfOpenFile(const std::string &path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
         (path.starts_with("/proc/") && path.find("/fd/") != std::string::npos);
}

} // namespace

OpenedFile openRegular(int folder, const char *name, Links links) {
  OpenedFile opened = open(folder, name, links);
  if (opened.fault.empty())
    opened.fault = faultOfKind(opened.info.st_mode);
  return opened;
}

OpenedFile openNamed(const std::string &path) {
  OpenedFile opened = open(AT_FDCWD, path.c_str(), Links::Followed);
  if (!opened.fault.empty())
    return opened;
  opened.fault = faultOfKind(opened.info.st_mode);
  if (opened.fault.empty() || S_ISDIR(opened.info.st_mode) || !isNameOfOpenFile(path))
    return opened;
  opened.fault.clear();
  if (::fcntl(opened.file.get(), F_SETFL, 0) != 0) // from here on it may wait: who writes is there
    opened.fault = std::strerror(errno);
  return opened;
}

Result<std::string> readOpened(int file, const std::string &path, std::size_t maxBytes) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Error{ErrorCode::Environment, "cannot read `" + path + "`: " + std::strerror(errno), {}};
    if (got == 0)
      return bytes;
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (bytes.size() > maxBytes)
      return Error{ErrorCode::Diagnostics,
                   "`" + path + "` has more than the limit of " + std::to_string(maxBytes) + " bytes",
                   {}};
  }
}

std::string beginningOf(const std::string &path, std::size_t bytes, Links links) {
  const OpenedFile opened = openRegular(AT_FDCWD, path.c_str(), links);
  std::string beginning(opened.fault.empty() ? bytes : 0, '\0');
  std::size_t done = 0;
  while (done < beginning.size()) {
    const ssize_t got = ::read(opened.file.get(), beginning.data() + done, beginning.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    done += static_cast<std::size_t>(got);
  }
  beginning.resize(done);
  return beginning;
}

} // namespace deft::support
