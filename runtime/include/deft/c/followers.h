#pragma once

#include <deft/c/gpu.h>
#include <deft/c/plan.h>

/// One call for a step of a deft_paged_batch or a deft_beam_tree and for all its plans.

DEFT_C_BEGIN

/// Plans that are to follow a step: each is advanced in the same call, and each of a GPU is uploaded where
/// that is asked for, so that a step is one call and its runs.
typedef struct deft_followers {
  size_t size; ///< sizeof(deft_followers)
  deft_plan *const *plans;
  size_t plan_count;
  deft_gpu_plan *const *gpu_plans;
  size_t gpu_plan_count;
  deft_gpu_stream stream; ///< of the uploads
  int32_t uploads;        ///< 1: puts each plan of a GPU on the stream
  deft_advanced advanced; ///< set by the call: the most that any plan had to do
  int32_t is_taken;       ///< set by the call: 1 once the batch or the beams are those of the step
  int32_t reserved;       ///< 0
} deft_followers;

DEFT_C_END
