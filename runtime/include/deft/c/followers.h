#pragma once

#include <deft/c/gpu.h>
#include <deft/c/plan.h>

/// One call for a step of a deft_paged_batch or a deft_beam_tree and for all its plans.

DEFT_C_BEGIN

/// Plans that follow a step: the call that makes the step also advances each plan and, if asked, uploads each
/// plan of a GPU. So a step is one call and its runs.
typedef struct deft_followers {
  size_t size; ///< sizeof(deft_followers)
  deft_plan *const *plans;
  size_t plan_count;
  deft_gpu_plan *const *gpu_plans;
  size_t gpu_plan_count;
  deft_gpu_stream stream; ///< of the uploads
  int32_t uploads;        ///< 1: puts each plan of a GPU on the stream
  deft_advanced advanced; ///< set by the call: the largest change of any plan
  int32_t is_taken;       ///< set by the call: 1 if the batch or the beams have advanced
  int32_t reserved;       ///< 0
} deft_followers;

DEFT_C_END
