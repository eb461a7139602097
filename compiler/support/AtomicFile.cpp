#include "compiler/support/AtomicFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace deft::support {
namespace {

Error systemError(const char *what, const std::string &path) {
  return {
      ErrorCode::Environment, std::string("cannot ") + what + " `" + path + "`: " + std::strerror(errno), {}};
}

class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int get() const { return fd_; }
  int close() {
    int status = ::close(fd_);
    fd_ = -1;
    return status;
  }

private:
  int fd_;
};

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

mode_t modeForNewFiles() {
  // umask can only be read by setting it, which would race with other threads; 0644 is what every
  // common mask allows, and a stricter folder still hides the file.
  return 0644;
}

} // namespace

Result<void> writeFileAtomically(const std::string &path, std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0)
    return systemError("write", path);
  if (!writeAll(file.get(), bytes) || ::fchmod(file.get(), modeForNewFiles()) != 0 ||
      ::fsync(file.get()) != 0 || file.close() != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = systemError("write", path);
    ::unlink(temporary.c_str());
    return error;
  }
  // Without this the rename itself may be lost in a crash. Some file systems refuse it; the data is safe then
  // too.
  std::size_t slash = path.find_last_of('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0)
    ::fsync(directory.get());
  return {};
}

Result<std::string> readFile(const std::string &path, std::size_t maxBytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return systemError("read", path);
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return systemError("read", path);
  }
  // Pipes and devices have no size, so the limit is held while reading.
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError("read", path);
    if (got == 0)
      return bytes;
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (bytes.size() > maxBytes)
      return Error{ErrorCode::Diagnostics,
                   "`" + path + "` has more than the limit of " + std::to_string(maxBytes) + " bytes",
                   {}};
  }
}

} // namespace deft::support
