#include "runtime/peers/Segment.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace deft::peers {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error failed(const std::string &what, const std::string &name, const std::string &hint = "") {
  return {ErrorCode::Environment, what + " shared memory `" + name + "`: " + std::strerror(errno), hint};
}

std::byte *mapped(int file, std::size_t bytes) {
  void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte *>(memory);
}

} // namespace

Segment::~Segment() {
  forgetName();
  if (memory_)
    munmap(memory_, bytes_);
}

Result<Segment> Segment::make(const std::string &name, std::size_t bytes) {
  const int file = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
  if (file < 0 && errno == EEXIST)
    return Segment();
  if (file < 0)
    return failed("cannot make", name);
  Segment made;
  made.name_ = name;
  made.bytes_ = bytes;
  // Not ftruncate: pages that the system cannot give would end the process when they are written.
  if (const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    auto fault = failed("no " + std::to_string(bytes) + " bytes for", name, "give /dev/shm more room");
    close(file);
    return fault;
  }
  made.memory_ = mapped(file, bytes);
  auto fault = failed("cannot map", name);
  close(file);
  if (!made.memory_)
    return fault;
  return made;
}

Result<Segment> Segment::open(const std::string &name, std::size_t bytes) {
  const int file = shm_open(name.c_str(), O_RDWR, 0);
  if (file < 0 && errno == ENOENT)
    return Segment();
  if (file < 0)
    return failed("cannot open", name);
  struct stat facts{};
  const bool isWhole = fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(bytes);
  Segment opened;
  if (isWhole) {
    opened.bytes_ = static_cast<std::size_t>(facts.st_size);
    opened.memory_ = mapped(file, opened.bytes_);
  }
  auto fault = failed("cannot map", name);
  close(file);
  if (isWhole && !opened.memory_)
    return fault;
  return opened;
}

void Segment::forgetName() {
  if (!name_.empty())
    forget(std::exchange(name_, {}));
}

void Segment::forget(const std::string &name) { shm_unlink(name.c_str()); }

void Segment::swap(Segment &other) noexcept {
  std::swap(name_, other.name_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
}

} // namespace deft::peers
