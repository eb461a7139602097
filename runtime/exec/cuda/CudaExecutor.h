#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/device/Device.h"
#include "runtime/exec/Inputs.h"
#include "runtime/module_cache/KernelSet.h"
#include "runtime/plan/Plan.h"

#include <memory>

namespace deft::exec {

/// Runs plans of one variant on one GPU. Kernels are loaded once; inputs and plans are replaced without
/// loading again, and buffers only grow. The order is: create, load, prepare, then enqueue as often as
/// wanted, then read. Calls are for one thread at a time.
class CudaExecutor {
public:
  static support::Result<std::unique_ptr<CudaExecutor>> create(std::shared_ptr<device::Device> device,
                                                               const spec::Variant &variant,
                                                               const module_cache::KernelSet &kernels);

  /// Blocks that run at a time, of the phase that runs fewest: what plan::makePlan wants to know.
  int blocksAtOnce() const;

  /// Uploads queries, cache and parameters.
  support::Result<void> load(const Inputs &inputs);

  /// Uploads the plan and fills the outputs with NaN, so that a row nobody writes is seen.
  support::Result<void> prepare(const plan::Plan &plan);

  /// Puts one run on the device's stream; allocates and waits for nothing, so it can be captured.
  support::Result<void> enqueue();

  /// Waits and copies the outputs.
  support::Result<void> read(Outputs &outputs);

private:
  CudaExecutor(std::shared_ptr<device::Device> device, const spec::Variant &variant);
  support::Result<void> uploadParams(const Inputs &inputs);

  std::shared_ptr<device::Device> device_;
  spec::Variant variant_;
  std::vector<device::Kernel> attend_; ///< one a phase
  std::vector<int> mostBlocks_;        ///< of a launch of each
  std::vector<device::Kernel> merge_;  ///< one
  device::Buffer q_, k_, v_, pageTable_, paramArrays_;
  device::Buffer out_, lse_, partialOut_, partialLse_;
  device::Buffer items_, runs_, callerIndex_, queryPos_, mergeQuery_, mergeBegin_, mergeSlot_;
  std::vector<abi::ParamSlot> params_; ///< with device pointers; never empty, so that it has an address
  std::vector<plan::Plan::Phase> phases_;
  abi::AttendArgs attendArgs_{};
  abi::MergeArgs mergeArgs_{};
  int queryCount_ = 0;
};

} // namespace deft::exec
