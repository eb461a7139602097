#pragma once

#include <deft/c/gpu.h>
#include <deft/c/status.h>

/// Captured steps: small files of what a program computes, for `deftc replay` on another machine.

DEFT_C_BEGIN

enum {
  DEFT_CAPTURE_HOST = 0,   ///< what the host knows; waits for nothing
  DEFT_CAPTURE_DEVICE = 1, ///< a captured step also waits for its GPU and copies page table, lengths, drafts
  DEFT_CAPTURE_TENSORS = 2 ///< and q, K and V of the step's tokens
};

typedef struct deft_capture_options {
  size_t size;        ///< sizeof(deft_capture_options)
  const char *folder; ///< for the files; it is made where it is not there. Null: capturing ends
  int32_t what;       ///< DEFT_CAPTURE_...
  int32_t most_steps; ///< files at most; 0: 256
  int64_t most_bytes; ///< of all files together; 0: 2^30
} deft_capture_options;

/// Captures steps from now on, in place of what DEFT_CAPTURE says. Null: no more.
///
/// Of each plan, the first four trees are written, then those whose numbers are powers of two, each with the
/// first run of each attention (of four at most). A plan is seen from its next tree on. Specs, parameters,
/// config, tree, page table, drafts, strides and times are written; environment variables, folders and names
/// of users are not. A step that cannot be written, and a limit, end capturing: no run fails for it. The log
/// says so (DEFT_LOG_CAPTURE), and deft_get_capture.
DEFT_C_API deft_status deft_set_capture(const deft_capture_options *options);

/// What was captured. Made by the library: deft_free gives all of it back. Fields that do not lie within its
/// size are not there.
typedef struct deft_capture_state {
  size_t size;
  const char *folder; ///< of what is or was captured last; empty: nothing was
  const char *ended;  ///< why no more is written; empty: it goes on, or was ended by the program
  int64_t bytes;      ///< that were written
  int32_t steps;      ///< that were written
  int32_t is_on;
} deft_capture_state;

/// `*state` is the caller's: deft_free.
DEFT_C_API deft_status deft_get_capture(deft_capture_state **state);

/// A replayed graph runs nothing on the host, so its steps are written when their plan is uploaded, as the
/// host knows them then. This call, between replays, waits for the stream and writes the step as the GPU has
/// it: lengths, drafts and page table of the last replay. An error where no steps are captured, or no graph
/// has captured a run of the plan since they are.
DEFT_C_API deft_status deft_gpu_plan_capture_replay(deft_gpu_plan *plan, deft_gpu_stream stream);

DEFT_C_END
