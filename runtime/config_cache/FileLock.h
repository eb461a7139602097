#pragma once

#include "compiler/support/Result.h"

#include <string>

namespace deft::config_cache {

/// Holds a file's lock against other processes and other threads until it is destroyed. The lock file stays:
/// who removed it would take the lock from under one who waits for it.
class FileLock {
public:
  /// Waits so long for whoever holds it; a writer needs milliseconds.
  static constexpr int kPatienceMs = 10'000;

  static support::Result<FileLock> take(const std::string &path, int patienceMs = kPatienceMs);

  /// The lock beside a file, whatever link the file is named by: two names of one file are one lock.
  static support::Result<FileLock> ofFile(const std::string &path);

  FileLock(FileLock &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock &operator=(FileLock &&) = delete;
  ~FileLock();

private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

} // namespace deft::config_cache
