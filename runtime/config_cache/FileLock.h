#pragma once

#include "compiler/support/Result.h"

#include <string>

namespace deft::config_cache {

/// Holds a file's lock against other processes and threads until it is destroyed. The lock file is never
/// removed: that would break the lock for a process that waits for it.
class FileLock {
public:
  /// How long to wait for the holder; a writer needs milliseconds.
  static constexpr int kPatienceMs = 10'000;

  static support::Result<FileLock> take(const std::string &path, int patienceMs = kPatienceMs);

  /// The lock next to a file. It follows links, so two names of one file share one lock.
  static support::Result<FileLock> ofFile(const std::string &path);

  FileLock(FileLock &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock &operator=(FileLock &&) = delete;
  ~FileLock();

private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

} // namespace deft::config_cache
