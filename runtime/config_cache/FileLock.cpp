#include "runtime/config_cache/FileLock.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace deft::config_cache {

using support::Error;
using support::ErrorCode;

support::Result<FileLock> FileLock::take(const std::string &path, int patienceMs) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return Error{ErrorCode::Environment, "cannot lock `" + path + "`: " + std::strerror(errno), ""};
  FileLock lock(fd);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patienceMs);
  // Asked again and again, because a wait without an end would hang with a process that was stopped.
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Error{ErrorCode::Environment, "cannot lock `" + path + "`: " + std::strerror(errno), ""};
    if (std::chrono::steady_clock::now() > end)
      return Error{ErrorCode::Environment,
                   "`" + path + "` is locked by another process since " + std::to_string(patienceMs) + " ms",
                   ""};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return lock;
}

support::Result<FileLock> FileLock::ofFile(const std::string &path) {
  std::error_code failure;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failure), failure);
  return take((failure ? path : whole.string()) + ".lock");
}

FileLock::~FileLock() {
  if (fd_ >= 0)
    ::close(fd_);
}

} // namespace deft::config_cache
