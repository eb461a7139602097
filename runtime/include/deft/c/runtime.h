#pragma once

#include <deft/c/plan.h>
#include <deft/c/tensor.h>

/// The threads that compute on this machine's processors.

DEFT_C_BEGIN

/// All zero is the default.
typedef struct deft_runtime_options {
  size_t size;      ///< sizeof(deft_runtime_options)
  int32_t threads;  ///< at most 1,024; 0: one for each processor that this process may use
  int32_t reserved; ///< 0
} deft_runtime_options;

/// Runs plans. Runtimes of one process are independent, and several threads may run plans on one at
/// once.
typedef struct deft_runtime deft_runtime;

/// `options` may be null.
DEFT_C_API deft_status deft_runtime_make(const deft_runtime_options *options, deft_runtime **runtime);
/// Do not call it during a run, nor in a forked child: a child has no copies of the threads, so make another
/// runtime there.
DEFT_C_API void deft_runtime_destroy(deft_runtime *runtime);
DEFT_C_API int32_t deft_runtime_threads(const deft_runtime *runtime);

/// Computes the attention of all queries of the plan's tree, in host memory, and returns when it is done.
/// Errors (a tensor that is missing or wrong, a stale plan, a parameter without a value) are found before
/// anything is written, except those of deft_run_settings::check_finite. The result does not depend on the
/// number of threads.
DEFT_C_API deft_status deft_runtime_run(const deft_runtime *runtime, const deft_attention *attention,
                                        const deft_plan *plan, const deft_inputs *inputs,
                                        const deft_outputs *outputs);

DEFT_C_END
