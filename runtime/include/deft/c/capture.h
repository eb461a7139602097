#pragma once

#include <deft/c/gpu.h>
#include <deft/c/status.h>

/// Captured steps: small files of a program's decode steps, for `deftc replay` on another machine.

DEFT_C_BEGIN

enum {
  DEFT_CAPTURE_HOST = 0,   ///< only the host's values; does not wait
  DEFT_CAPTURE_DEVICE = 1, ///< a captured step also waits for its GPU and copies page table, lengths, drafts
  DEFT_CAPTURE_TENSORS = 2 ///< and q, K and V of the step's tokens
};

typedef struct deft_capture_options {
  size_t size;        ///< sizeof(deft_capture_options)
  const char *folder; ///< for the files; created if it does not exist. Null: capturing ends
  int32_t what;       ///< DEFT_CAPTURE_...
  int32_t most_steps; ///< files at most; 0: 256
  int64_t most_bytes; ///< of all files together; 0: 2^30
} deft_capture_options;

/// Captures steps from now on, overriding DEFT_CAPTURE. Null: ends capturing.
///
/// Of each plan it writes the first four trees, then those whose numbers are powers of two, each with the
/// first run of each attention (at most four). A plan counts from its next tree on. Specs, parameters,
/// config, tree, page table, drafts, strides and times are written; environment variables, folders and names
/// of users are not. A step that cannot be written, or a limit, ends capturing; no run fails because of it.
/// The log (DEFT_LOG_CAPTURE) and deft_get_capture report it.
DEFT_C_API deft_status deft_set_capture(const deft_capture_options *options);

/// The captured steps. Made by the library: free it with deft_free. Fields beyond its size do not exist.
typedef struct deft_capture_state {
  size_t size;
  const char *folder; ///< of the current or last capture; empty: none
  const char *ended;  ///< why it ended; empty: it continues, or the program ended it
  int64_t bytes;      ///< that were written
  int32_t steps;      ///< that were written
  int32_t is_on;
} deft_capture_state;

/// Free `*state` with deft_free.
DEFT_C_API deft_status deft_get_capture(deft_capture_state **state);

/// A replayed graph runs nothing on the host, so its steps are captured when their plan is uploaded, with the
/// host's values. Call this function between replays to capture the GPU's values: it waits for the stream and
/// writes lengths, drafts and page table of the last replay. It is an error if capturing is off, or if no
/// graph has captured a run of the plan since capturing began.
DEFT_C_API deft_status deft_gpu_plan_capture_replay(deft_gpu_plan *plan, deft_gpu_stream stream);

DEFT_C_END
