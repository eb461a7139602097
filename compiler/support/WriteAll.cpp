#include "compiler/support/WriteAll.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <unistd.h>

namespace deft::support {
namespace {

/// While it lives, this thread is not ended by SIGXFSZ, which a write beyond the limit sends to the thread
/// that writes. What the program does with the signal stays as it is: a library has no say in that.
class WithoutSizeSignal {
public:
  WithoutSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    sigset_t waiting;
    ::sigemptyset(&waiting);
    ::sigpending(&waiting);
    wasWaiting_ = ::sigismember(&waiting, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutSizeSignal() {
    const int kept = errno;
    const timespec atOnce{};
    if (!wasWaiting_) // else it is somebody else's
      while (::sigtimedwait(&signal_, nullptr, &atOnce) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = kept;
  }
  WithoutSizeSignal(const WithoutSizeSignal &) = delete;
  WithoutSizeSignal &operator=(const WithoutSizeSignal &) = delete;

private:
  sigset_t signal_, before_;
  bool wasWaiting_ = false;
};

} // namespace

bool writeAll(int file, std::string_view bytes) {
  const WithoutSizeSignal guard;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

} // namespace deft::support
