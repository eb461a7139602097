#pragma once

#include "runtime/api/Gpu.h"
#include "runtime/api/Plan.h"
#include "runtime/api/RunTensors.h"
#include "runtime/exec/cuda/CudaPlan.h"

#include <memory>
#include <optional>

struct deft_gpu_plan {
  deft_gpu_attention attention; ///< that it was made for: keeps the device and the kernels' config
  deft::api::Plan host;
  std::unique_ptr<deft::exec::CudaPlan> device;
  std::shared_ptr<deft::api::TreeStamp> followed; ///< by device->watch()
  deft::plan::Choice taken;                       ///< how the plan was cut that was taken last
  bool checksPages = false;                       ///< runs are to say how many the cache has
  bool isReserved = false;                        ///< the room is that of reserve(), at least
  std::optional<deft::exec::GrowthRules> growth;

  deft_gpu_plan(const deft_gpu_attention &of, std::unique_ptr<deft::exec::CudaPlan> on)
      : attention(of), device(std::move(on)) {}
  deft_gpu_plan(const deft_gpu_plan &) = delete;
  deft_gpu_plan &operator=(const deft_gpu_plan &) = delete;
  ~deft_gpu_plan() { unfollow(); }

  deft::api::RunPlace place() const { return {.isGpu = true, .gpu = attention.gpu.index()}; }

  /// The host's plan is the tree's; the device's is to become it.
  deft::api::Result<void> take();
  deft::api::Result<deft_advanced> advance(const deft_tree &tree);
  deft::api::Result<void> reserve(const deft_gpu_room &given);
  deft_gpu_room room() const;

private:
  void unfollow() {
    if (followed)
      followed->unfollow(device->watch()->treeGeneration().get());
    followed = nullptr;
  }
  /// The first drafts bring their tables: where room was reserved, for as many as it has.
  deft::api::Result<void> makeDraftTables();
};

namespace deft::api {

Result<std::unique_ptr<deft_gpu_plan>> makeGpuPlan(const deft_gpu_attention &attention, const deft_tree &tree,
                                                   const deft_gpu_plan_options *options);

} // namespace deft::api
