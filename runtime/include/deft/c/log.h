#pragma once

#include <deft/c/status.h>

/// A callback for rare, expensive events, and ranges for profilers. Both belong to the process, are off by
/// default, and then cost one read of a flag each.

DEFT_C_BEGIN

enum {
  DEFT_LOG_COMPILE = 0,    ///< a kernel for a GPU, or an attention for this processor, was compiled
  DEFT_LOG_CACHE_HIT = 1,  ///< a compiled kernel was in the cache on disk
  DEFT_LOG_CACHE_MISS = 2, ///< a kernel was not in the cache: it is compiled now
  DEFT_LOG_PLAN = 3,       ///< a plan was made or made again
  DEFT_LOG_STALE_PLAN =
      4, ///< a run was refused because its plan is older than its tree, or a replayed graph had such a plan
  DEFT_LOG_TUNE = 5,   ///< a step of a tuning session
  DEFT_LOG_CAPTURE = 6 ///< a step was written to a file, or capturing ended (deft_set_capture)
};

/// "compile", "cache hit", "cache miss", "plan", "stale plan", "tune", "capture"; empty for another number.
/// Do not free it.
DEFT_C_API const char *deft_log_kind_name(int32_t kind);

typedef struct deft_log_message {
  size_t size;
  const char *kind_name; ///< deft_log_kind_name
  const char *text;      ///< one line, lower case, without a final period; both stay for the call only
  double duration_us;    ///< how long it took; below 0: it has no duration
  int32_t kind;          ///< DEFT_LOG_...
  int32_t reserved;      ///< 0
} deft_log_message;

typedef struct deft_log_listener {
  size_t size;
  void *context;
  void (*message)(void *context, const deft_log_message *message);
} deft_log_listener;

/// Sets the listener; null, or a listener without a function, turns the log off. The struct is copied. Waits
/// for calls of the former listener, so you may free its context afterwards. Calls may come from several
/// threads at once. The function must not call deft_set_log; events within a call are not reported.
DEFT_C_API deft_status deft_set_log(const deft_log_listener *listener);

/// Turns ranges (NVTX, domain "deft") around each plan, run and compilation on or off; the environment
/// variable DEFT_NVTX=1 turns them on from the start. Returns 0 if this build has no NVTX headers, so no
/// ranges.
DEFT_C_API int32_t deft_set_nvtx(int32_t is_on);

DEFT_C_END
