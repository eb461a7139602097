#include "compiler/codegen/cpu/PipeCatcher.h"

#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace deft::codegen::cpu {

PipeCatcher::PipeCatcher(const std::string &path) {
  if (::mkfifo(path.c_str(), S_IRUSR | S_IWUSR) != 0)
    return;
  read_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); // nobody writes yet
  write_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC); // so that there is somebody, and reading finds no end
  ended_ = ::eventfd(0, EFD_CLOEXEC);
  if (read_ >= 0 && write_ >= 0 && ended_ >= 0)
    thread_ = std::thread([this] { catchAll(); });
}

PipeCatcher::~PipeCatcher() {
  (void)taken();
  for (const int end : {read_, write_, ended_})
    if (end >= 0)
      ::close(end);
}

std::string PipeCatcher::taken() {
  if (thread_.joinable()) {
    (void)::eventfd_write(ended_, 1);
    thread_.join();
  }
  return std::move(caught_);
}

void PipeCatcher::catchAll() {
  pollfd waits[] = {{read_, POLLIN, 0}, {ended_, POLLIN, 0}};
  for (;;) {
    if (::poll(waits, std::size(waits), -1) < 0) {
      if (errno == EINTR) // a signal of the host's
        continue;
      return;
    }
    const bool hasEnded = waits[1].revents != 0; // looked at first: all that was written is in the pipe then
    drain();
    if (hasEnded)
      return;
  }
}

void PipeCatcher::drain() {
  char some[1 << 16];
  for (;;) {
    const ssize_t bytes = ::read(read_, some, sizeof some);
    if (bytes < 0 && errno == EINTR)
      continue;
    if (bytes <= 0) // no more at the moment
      return;
    caught_.append(some, static_cast<std::size_t>(bytes));
  }
}

} // namespace deft::codegen::cpu
