#pragma once

#include "runtime/exec/cuda/CudaInputs.h"
#include "runtime/exec/cuda/CudaPlan.h"

#include <memory>

namespace deft::exec {

/// Kernels and a plan for them, on the device's own stream, over inputs from the host (CudaInputs). This is
/// the GPU for tools: call prepare(), then enqueue() any number of times, then read the outputs of the
/// inputs. For one thread at a time. Servers use CudaPlan.
class CudaExecutor {
public:
  /// `budget`: tokens of a list for runs that select; 0: no run selects. `sparseCuts`: as in
  /// CudaKernels.
  static support::Result<std::unique_ptr<CudaExecutor>>
  create(std::shared_ptr<device::Device> device, const spec::Variant &variant,
         const package::KernelSet &kernels, int budget = 0, std::vector<config::SparseCut> sparseCuts = {});

  /// Blocks that run at a time, in the phase that runs the fewest: an argument of plan::makePlan.
  int blocksAtOnce() const { return kernels_->blocksAtOnce(); }

  /// Uploads the plan, with room for exactly this one, so that a captured run launches no extra blocks.
  support::Result<void> prepare(const plan::Plan &plan);

  /// Puts one run of the plan on the device's stream. Does not wait or allocate, so it can be captured.
  support::Result<void> enqueue(const CudaInputs &on);

  /// The same for a run that selects, and for a run that reads the lists of the last selecting run.
  support::Result<void> enqueueSelecting(const CudaInputs &on);
  support::Result<void> enqueueSparse(const CudaInputs &on);

  /// One complete run, up to the outputs on the host. Rows that no item writes are NaN.
  support::Result<void> run(const plan::Plan &plan, CudaInputs &on, Outputs &outputs);
  /// The same for a run that selects; also returns its lists.
  support::Result<void> runSelecting(const plan::Plan &plan, CudaInputs &on, Outputs &outputs,
                                     Selection &selection);
  /// How the plan cuts these lists; null: it does not select.
  const SparseSplit::Cut *sparseCut() const { return plan_->sparseCut(); }
  /// One run over these lists, by the same plan.
  support::Result<void> runSparse(CudaInputs &on, Outputs &outputs);

  /// For tests, before a run: fills the partials with NaN; reading one that was not written then shows.
  support::Result<void> poison();

private:
  CudaExecutor(std::shared_ptr<const CudaKernels> kernels, std::unique_ptr<CudaPlan> plan)
      : kernels_(std::move(kernels)), plan_(std::move(plan)) {}

  std::shared_ptr<const CudaKernels> kernels_;
  std::unique_ptr<CudaPlan> plan_;
  int queryCount_ = 0; ///< of the current plan
};

} // namespace deft::exec
