#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/cuda/CudaPlan.h"

#include <memory>
#include <optional>

namespace deft::exec {

/// What a tool wants of a GPU: inputs and outputs that live on the host, with device memory of its own for
/// them, on the device's own stream. Buffers only grow. The order is: create, load, prepare, then enqueue as
/// often as wanted, then read. Calls are for one thread at a time. Servers use CudaPlan.
class CudaExecutor {
public:
  static support::Result<std::unique_ptr<CudaExecutor>> create(std::shared_ptr<device::Device> device,
                                                               const spec::Variant &variant,
                                                               const module_cache::KernelSet &kernels);

  /// Blocks that run at a time, of the phase that runs fewest: what plan::makePlan wants to know.
  int blocksAtOnce() const { return kernels_->blocksAtOnce(); }

  /// Uploads queries, cache and parameters.
  support::Result<void> load(const Inputs &inputs);

  /// Uploads the plan and fills the outputs with NaN, so that a row nobody writes is seen.
  support::Result<void> prepare(const plan::Plan &plan);

  /// For tests, before load: what larger inputs leave behind the next ones becomes NaN, and no page.
  support::Result<void> poisonInputs();

  /// For tests, before a run: fills with NaN all that a run must write before somebody reads it, partials and
  /// outputs.
  support::Result<void> poison();

  /// Puts one run on the device's stream; allocates and waits for nothing, so it can be captured.
  support::Result<void> enqueue() { return plan_->run(*kernels_, pointers_, device_->stream()); }

  /// Waits and copies the outputs.
  support::Result<void> read(Outputs &outputs);

private:
  explicit CudaExecutor(std::shared_ptr<const CudaKernels> kernels);
  const spec::Variant &variant() const { return kernels_->variant(); }

  std::shared_ptr<device::Device> device_;
  std::shared_ptr<const CudaKernels> kernels_;
  std::unique_ptr<const CudaParams> params_;
  std::unique_ptr<CudaPlan> plan_;
  device::Buffer q_, k_, v_, pageTable_, out_, lse_;
  CudaPointers pointers_;
  int queryCount_ = 0;
};

} // namespace deft::exec
