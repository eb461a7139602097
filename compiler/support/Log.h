#pragma once

#include <chrono>
#include <functional>
#include <string>

/// Rare, expensive events, for a callback of the program that uses the library. Without a callback it costs
/// one read of a flag. The callback belongs to the process, because the events happen below any object that a
/// program holds.
namespace deft::support {

enum class LogKind {
  Compile,   ///< a kernel, or a variant for this processor
  CacheHit,  ///< a compiled kernel was on disk
  CacheMiss, ///< and was not
  Plan,      ///< made, anew too
  StalePlan, ///< a run was refused, or a replayed graph was found to have had one
  Tune,      ///< a step of a tuning session
  Capture,   ///< a step was written to a file, or no more are
};

struct LogMessage {
  LogKind kind;
  std::string text;       ///< one line, lower case, without a final period
  double durationUs = -1; ///< below 0: it has none
};

using LogFunction = std::function<void(const LogMessage &)>;

/// Whom to tell from now on; null: nobody. Waits for calls of the former function, so that afterwards what it
/// refers to can go. Calls may come from several threads at once. The function must not call setLog; what the
/// library does within a call is not told, and what the function throws is dropped.
void setLog(LogFunction function);

/// For a forked child: the function is its parent's. Takes no lock.
void silenceLog() noexcept;

bool isLogged() noexcept;

/// Tells, if somebody is to be told. Where words cost something, ask isLogged() before.
void log(const LogMessage &message) noexcept;

/// Something that takes time, from here on; the clock is read only if there is a callback.
class LoggedSpan {
public:
  LoggedSpan() : isLogged_(isLogged()) {
    if (isLogged_)
      begin_ = Clock::now();
  }

  /// Tells of what began with this object; `text` makes the words.
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
