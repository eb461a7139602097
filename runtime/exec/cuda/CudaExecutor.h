#pragma once

#include "runtime/exec/cuda/CudaInputs.h"
#include "runtime/exec/cuda/CudaPlan.h"

#include <memory>

namespace deft::exec {

/// Kernels and the plan that they run, on the device's own stream, over inputs of the host (CudaInputs): what
/// tools want of a GPU. The order is: prepare, then enqueue as often as wanted, then read the inputs'
/// outputs. Calls are for one thread at a time. Servers use CudaPlan.
class CudaExecutor {
public:
  /// `budget`: tokens of a list, where runs are to select; 0: none does. `sparseCuts` as CudaKernels has
  /// them.
  static support::Result<std::unique_ptr<CudaExecutor>>
  create(std::shared_ptr<device::Device> device, const spec::Variant &variant,
         const package::KernelSet &kernels, int budget = 0, std::vector<config::SparseCut> sparseCuts = {});

  /// Blocks that run at a time, of the phase that runs fewest: what plan::makePlan wants to know.
  int blocksAtOnce() const { return kernels_->blocksAtOnce(); }

  /// Uploads the plan, with room for no larger one: a captured run then launches as many blocks as any other.
  support::Result<void> prepare(const plan::Plan &plan);

  /// Puts one run of the plan on the device's stream; allocates and waits for nothing, so it can be captured.
  support::Result<void> enqueue(const CudaInputs &on);

  /// The same of a run that selects, and of one that reads the lists of the last that did.
  support::Result<void> enqueueSelecting(const CudaInputs &on);
  support::Result<void> enqueueSparse(const CudaInputs &on);

  /// One run from the plan to its outputs on the host; rows that no item writes are NaN.
  support::Result<void> run(const plan::Plan &plan, CudaInputs &on, Outputs &outputs);
  /// The same, and the lists.
  support::Result<void> runSelecting(const plan::Plan &plan, CudaInputs &on, Outputs &outputs,
                                     Selection &selection);
  /// How the plan cuts these lists; null: none selects.
  const SparseSplit::Cut *sparseCut() const { return plan_->sparseCut(); }
  /// Over these lists, by the same plan.
  support::Result<void> runSparse(CudaInputs &on, Outputs &outputs);

  /// For tests, before a run: NaN in the partials, which a run must write before somebody reads them.
  support::Result<void> poison();

private:
  CudaExecutor(std::shared_ptr<const CudaKernels> kernels, std::unique_ptr<CudaPlan> plan)
      : kernels_(std::move(kernels)), plan_(std::move(plan)) {}

  std::shared_ptr<const CudaKernels> kernels_;
  std::unique_ptr<CudaPlan> plan_;
  int queryCount_ = 0; ///< of the plan
};

} // namespace deft::exec
