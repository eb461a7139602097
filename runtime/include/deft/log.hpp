#pragma once

#include <deft/export.hpp>

#include <functional>
#include <string>

/// What the library does that happens seldom and costs much, told to the program; and ranges for profilers.
/// Both are the process's and off by default, and cost one read of a flag each while they are.
namespace deft {

enum class LogKind {
  Compile,   ///< a kernel for a GPU, or an attention for this processor, was compiled
  CacheHit,  ///< a compiled kernel was in the cache on disk
  CacheMiss, ///< a kernel was not in the cache: it is compiled now
  Plan,      ///< a plan was made, by Plan::make or because advance() could not change it in place
  StalePlan, ///< a run was refused because its plan is older than its tree, or a replayed graph had such a
             ///< plan
  Tune,      ///< a step of a tuning session
};

/// "compile", "cache hit", "cache miss", "plan", "stale plan", "tune".
DEFT_API const char *logKindName(LogKind kind);

struct LogMessage {
  LogKind kind = LogKind::Compile;
  std::string text;       ///< one line, lower case, without a final period
  double durationUs = -1; ///< how long it took; below 0: it has no duration
};

/// Tells this function from now on; an empty one: nobody. Waits for calls of the former one, so that
/// afterwards what it refers to can go. Calls may come from several threads at once, in whichever it happens.
/// The function must not call setLog; what the library does within a call is not told, and an exception that
/// leaves it is dropped.
DEFT_API void setLog(std::function<void(const LogMessage &)> function);

/// Ranges (NVTX, domain "deft") around each plan, run and compilation from now on, or no more; the
/// environment variable DEFT_NVTX=1 has them from the beginning. False where this build was made without
/// NVTX's headers, which has none.
DEFT_API bool setNvtx(bool isOn);

} // namespace deft
