#pragma once

#include <deft/c/log.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

/// A callback for rare, expensive events, and ranges for profilers. Both belong to the process, are off by
/// default, and then cost one read of a flag each.
namespace deft {

enum class LogKind {
  Compile = DEFT_LOG_COMPILE,      ///< a kernel for a GPU, or an attention for this processor, was compiled
  CacheHit = DEFT_LOG_CACHE_HIT,   ///< a compiled kernel was in the cache on disk
  CacheMiss = DEFT_LOG_CACHE_MISS, ///< a kernel was not in the cache: it is compiled now
  Plan = DEFT_LOG_PLAN, ///< a plan was made, by Plan::make or because advance() could not change it in place
  StalePlan = DEFT_LOG_STALE_PLAN, ///< a run was refused because its plan is older than its tree, or a
                                   ///< replayed graph had such a plan
  Tune = DEFT_LOG_TUNE,            ///< a step of a tuning session
  Capture = DEFT_LOG_CAPTURE,      ///< a step was written to a file, or capturing ended
};

/// "compile", "cache hit", "cache miss", "plan", "stale plan", "tune", "capture".
inline const char *logKindName(LogKind kind) { return deft_log_kind_name(static_cast<std::int32_t>(kind)); }

struct LogMessage {
  LogKind kind = LogKind::Compile;
  std::string text;       ///< one line, lower case, without a final period
  double durationUs = -1; ///< how long it took; below 0: it has no duration
};

/// Sets the function that receives events; an empty one turns the log off. Waits for calls of the former
/// function, so you may then destroy the objects that it used. Calls may come from several threads at once.
/// The function must not call setLog; events within a call are not reported, and its exceptions are
/// dropped.
inline void setLog(std::function<void(const LogMessage &)> function) {
  using Function = std::function<void(const LogMessage &)>;
  static std::mutex mutex;
  static std::unique_ptr<Function> current; // the library has its address
  const std::lock_guard lock(mutex);
  auto next = function ? std::make_unique<Function>(std::move(function)) : nullptr;
  deft_log_listener listener{};
  listener.size = sizeof listener;
  listener.context = next.get();
  if (next)
    listener.message = [](void *context, const deft_log_message *message) {
      (*static_cast<Function *>(context))(
          {static_cast<LogKind>(message->kind), message->text, message->duration_us});
    };
  (void)deft_set_log(&listener);
  current = std::move(next);
}

/// Turns ranges (NVTX, domain "deft") around each plan, run and compilation on or off; the environment
/// variable DEFT_NVTX=1 turns them on from the start. Returns false if this build has no NVTX headers, so no
/// ranges.
inline bool setNvtx(bool isOn) { return deft_set_nvtx(isOn) != 0; }

} // namespace deft
