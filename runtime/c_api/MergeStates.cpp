#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Dtypes.h"
#include "runtime/c_api/Handles.h"
#include "runtime/c_api/RunTensors.h"

#include <deft/c/merge_states.h>
#include <deft/merge_states.hpp>

using namespace deft::c;

struct deft_gpu_state_merge {
  deft::GpuStateMerge merge;
  deft_dtype dtype;
  int gpu; ///< that it was loaded for
};

namespace {

deft::Result<deft::StateType> stateTypeOf(deft_dtype dtype) {
  switch (dtype) {
  case DEFT_F32:
    return deft::StateType::F32;
  case DEFT_F16:
    return deft::StateType::F16;
  case DEFT_BF16:
    return deft::StateType::BF16;
  default:
    return usage("states are " + dtypeName(dtype) + ", not float32, float16 or bfloat16");
  }
}

} // namespace

deft_status deft_merge_states(const deft_state *states, size_t count, const deft_state *to) {
  return call(__func__, {{"states", states}, {"to", to}}, [&]() -> deft::Result<void> {
    const auto dtype = stateDtype(states, count);
    if (!dtype)
      return dtype.error();
    const auto type = stateTypeOf(*dtype);
    if (!type)
      return type.error();
    const auto known = checkStates(states, count, to, *dtype, {});
    if (!known)
      return known.error();
    return deft::mergeStates({.rows = known->rows, .dim = known->dim, .type = *type}, known->states,
                             known->to);
  });
}

deft_status deft_gpu_state_merge_load(const deft_gpu *gpu, deft_dtype type, deft_gpu_state_merge **merge) {
  clearPlace(merge);
  return call(__func__, {{"gpu", gpu}, {"the place for what is made", merge}}, [&]() -> deft::Result<void> {
    const auto own = stateTypeOf(type);
    if (!own)
      return own.error();
    auto loaded = deft::GpuStateMerge::load(gpu->gpu, *own);
    if (!loaded)
      return loaded.error();
    *merge = new deft_gpu_state_merge{std::move(*loaded), type, gpu->gpu.facts().index};
    return {};
  });
}

void deft_gpu_state_merge_destroy(deft_gpu_state_merge *merge) { delete merge; }

deft_status deft_gpu_state_merge_run(const deft_gpu_state_merge *merge, const deft_state *states,
                                     size_t count, const deft_state *to, deft_gpu_stream stream) {
  return call(__func__, {{"merge", merge}, {"states", states}, {"to", to}}, [&]() -> deft::Result<void> {
    const auto type = stateTypeOf(merge->dtype);
    const auto known = checkStates(states, count, to, merge->dtype, {.isGpu = true, .gpu = merge->gpu});
    if (!known)
      return known.error();
    return merge->merge.run({.rows = known->rows, .dim = known->dim, .type = *type}, known->states, known->to,
                            stream);
  });
}
