#include "compiler/support/Log.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace deft::support {

namespace {

std::atomic<bool> isOn = false;

/// Never destroyed: threads of a program may still be at work when the process ends.
struct Listener {
  std::shared_mutex mutex; ///< shared by calls, alone by who changes the function
  LogFunction function;
};
Listener &listener() {
  static auto *const listener = new Listener;
  return *listener;
}

thread_local bool isInCall = false;

/// While a thread tells its listener something: also because a lock that it shares cannot be taken by it once
/// more.
struct Call {
  Call() { isInCall = true; }
  ~Call() { isInCall = false; }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
};

} // namespace

void setLog(LogFunction function) {
  Listener &to = listener();
  const std::unique_lock lock(to.mutex);
  isOn = static_cast<bool>(function);
  to.function = std::move(function);
}

void silenceLog() noexcept { isOn = false; }

bool isLogged() noexcept { return isOn.load(std::memory_order_relaxed) && !isInCall; }

void log(const LogMessage &message) noexcept {
  if (!isLogged())
    return;
  const Call call;
  try {
    Listener &to = listener();
    const std::shared_lock lock(to.mutex);
    if (to.function)
      to.function(message);
  } catch (...) {
    return; // what is told of must not depend on who listens
  }
}

} // namespace deft::support
