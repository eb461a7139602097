#pragma once

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace deft::support {

/// An open file or folder, closed by the destructor, which preserves errno.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      const int kept = errno;
      ::close(fd_);
      errno = kept;
    }
  }
  Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); } ///< the caller must close it
  int close() { return ::close(std::exchange(fd_, -1)); }

private:
  int fd_;
};

} // namespace deft::support
