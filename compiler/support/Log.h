#pragma once

#include <chrono>
#include <functional>
#include <string>

/// Reports rare, expensive events to a callback of the program that uses the library. Without a callback it
/// costs one read of a flag. The callback belongs to the process, because events occur below any object of
/// the program.
namespace deft::support {

enum class LogKind {
  Compile,   ///< a kernel, or a variant for this processor, was compiled
  CacheHit,  ///< a compiled kernel was on disk
  CacheMiss, ///< or was not
  Plan,      ///< a plan was made or remade
  StalePlan, ///< a run was refused, or a replayed graph used a stale plan
  Tune,      ///< a step of a tuning session
  Capture,   ///< a step was written to a file, or capturing ended
};

struct LogMessage {
  LogKind kind;
  std::string text;       ///< one line, lower case, without a final period
  double durationUs = -1; ///< below 0: none
};

using LogFunction = std::function<void(const LogMessage &)>;

/// Sets the callback; null turns the log off. Waits for calls of the former callback, so the caller may then
/// destroy the objects that it used. Calls may come from several threads at once. The callback must not call
/// setLog; events within a call are not reported, and its exceptions are dropped.
void setLog(LogFunction function);

/// For a forked child, since the callback belongs to its parent. Takes no lock.
void silenceLog() noexcept;

bool isLogged() noexcept;

/// Calls the callback, if there is one. If the text is expensive to make, check isLogged() first.
void log(const LogMessage &message) noexcept;

/// Measures an event from its construction on; reads the clock only if there is a callback.
class LoggedSpan {
public:
  LoggedSpan() : isLogged_(isLogged()) {
    if (isLogged_)
      begin_ = Clock::now();
  }

  /// Reports the event that began with this object; `text` makes the text.
  template <typename Text> void end(LogKind kind, Text text) const {
    if (isLogged_)
      log({kind, text(), std::chrono::duration<double, std::micro>(Clock::now() - begin_).count()});
  }

private:
  using Clock = std::chrono::steady_clock;
  bool isLogged_;
  Clock::time_point begin_;
};

} // namespace deft::support
