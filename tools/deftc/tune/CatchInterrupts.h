#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <iterator>

namespace deft::cli {

/// The signal of Ctrl-C or the like, once there was one; a second one ends the process.
inline std::atomic<int> interruptedBy = 0;
static_assert(std::atomic<int>::is_always_lock_free);

/// While it lives, Ctrl-C asks the session to stop.
class CatchInterrupts {
public:
  CatchInterrupts() {
    interruptedBy = 0;
    struct sigaction action{};
    action.sa_handler = [](int signal) { interruptedBy = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~CatchInterrupts() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  CatchInterrupts(const CatchInterrupts &) = delete;
  CatchInterrupts &operator=(const CatchInterrupts &) = delete;

private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM};
  struct sigaction before_[std::size(kSignals)] = {};
};

} // namespace deft::cli
