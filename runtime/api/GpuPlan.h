#pragma once

#include "runtime/api/Gpu.h"
#include "runtime/api/Plan.h"
#include "runtime/api/RunTensors.h"
#include "runtime/exec/cuda/CudaPlan.h"

#include <memory>
#include <optional>

struct deft_gpu_plan {
  deft_gpu_attention attention; ///< of this plan: keeps the device and the kernels' config
  deft::api::Plan host;
  std::unique_ptr<deft::exec::CudaPlan> device;
  std::shared_ptr<deft::api::TreeStamp> followed; ///< with device->watch()
  deft::plan::Choice taken;                       ///< how the last plan was divided
  bool checksPages = false;                       ///< runs must state the number of pages in the cache
  bool isReserved = false;                        ///< the room is at least that of reserve()
  std::optional<deft::exec::GrowthRules> growth;

  deft_gpu_plan(const deft_gpu_attention &of, std::unique_ptr<deft::exec::CudaPlan> on)
      : attention(of), device(std::move(on)) {}
  deft_gpu_plan(const deft_gpu_plan &) = delete;
  deft_gpu_plan &operator=(const deft_gpu_plan &) = delete;
  ~deft_gpu_plan() { unfollow(); }

  deft::api::RunDevice runDevice() const { return {.isGpu = true, .gpu = attention.gpu.index()}; }

  /// The host's plan is up to date with the tree; updates the device's plan.
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
  /// Makes the tables for the first drafts: if room was reserved, for as many drafts as it allows.
  deft::api::Result<void> makeDraftTables();
};

namespace deft::api {

Result<std::unique_ptr<deft_gpu_plan>> makeGpuPlan(const deft_gpu_attention &attention, const deft_tree &tree,
                                                   const deft_gpu_plan_options *options);

} // namespace deft::api
