#pragma once

#include "runtime/api/Params.h"
#include "runtime/api/Tree.h"
#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/PlanRoom.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Reach.h"

#include <deft/c/gpu.h>

#include <memory>

struct deft_gpu {
  std::shared_ptr<deft::device::Device> device;

  int index() const { return device->facts().ordinal; }
};

struct deft_gpu_attention {
  deft_gpu gpu;
  deft_attention attention;
  std::shared_ptr<const deft::exec::CudaKernels> kernels;
  /// An error: a parameter has no value, so nothing runs.
  deft::api::Result<std::shared_ptr<const deft::exec::CudaParams>> params;
  deft::plan::Reach reach; ///< of the mask, with these parameters
  /// The parameters' values on the host, for captured steps; without arrays over tokens and
  /// queries.
  std::shared_ptr<const std::vector<deft::exec::ParamValue>> values = nullptr;

  const deft::spec::Variant &variant() const { return attention.variant(); }
};

namespace deft::api {

inline device::cu::Stream streamOf(deft_gpu_stream stream) { return static_cast<device::cu::Stream>(stream); }

/// Options of plans on GPUs, checked for an attention. Null: all defaults.
struct GpuPlanOptions {
  deft_plan_options plan = {};
  deft_gpu_plan_options own = {};

  bool isInvariant() const { return plan.is_invariant != 0; }
  double listOverlap() const { return own.list_overlap / 100.0; }
};
Result<GpuPlanOptions> gpuPlanOptionsOf(const deft_gpu_plan_options *given, const spec::Variant &variant);

/// For plans with `phases` phases: a query may be merged from all existing partials.
exec::PlanRoom roomOf(const deft_gpu_room &room, std::size_t phases);

/// How to plan a tree that otherwise does not fit the room of a captured graph: deft_gpu_room_for() has room
/// for this plan of any tree.
constexpr plan::Choice kPlanOfLeastRoom{spec::Partition::Union, /*chunkTokens=*/0};

} // namespace deft::api
