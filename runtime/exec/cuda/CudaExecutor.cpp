#include "runtime/exec/cuda/CudaExecutor.h"

#include "compiler/support/InOrder.h"

namespace deft::exec {

using support::inOrder;
using support::Result;

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(std::shared_ptr<device::Device> device,
                                                           const spec::Variant &variant,
                                                           const package::KernelSet &kernels, int budget,
                                                           std::vector<config::SparseCut> sparseCuts) {
  auto loaded = CudaKernels::load(std::move(device), variant, kernels, std::move(sparseCuts));
  if (!loaded)
    return loaded.error();
  CudaPlanOptions options;
  options.budget = budget;
  auto plan = CudaPlan::create(*loaded, options);
  if (!plan)
    return plan.error();
  return std::unique_ptr<CudaExecutor>(new CudaExecutor(std::move(*loaded), std::move(*plan)));
}

Result<void> CudaExecutor::prepare(const plan::Plan &plan) {
  queryCount_ = plan.queryCount();
  return inOrder([&] { return kernels_->device()->synchronize("the run before"); },
                 [&] { return plan_->setRoom(plan_->roomOf(plan)); }, [&] { return plan_->write(plan); },
                 [&] { return plan_->upload(kernels_->device()->stream()); });
}

Result<void> CudaExecutor::enqueue(const CudaInputs &on) {
  if (auto checked = on.checkQueries(queryCount_); !checked)
    return checked;
  return plan_->run(*kernels_, on.pointers(), kernels_->device()->stream());
}

Result<void> CudaExecutor::enqueueSelecting(const CudaInputs &on) {
  if (auto checked = on.checkQueries(queryCount_); !checked)
    return checked;
  return plan_->runSelecting(*kernels_, on.pointers(), kernels_->device()->stream());
}

Result<void> CudaExecutor::enqueueSparse(const CudaInputs &on) {
  if (auto checked = on.checkQueries(queryCount_); !checked)
    return checked;
  return plan_->runSparse(*kernels_, on.pointers(), kernels_->device()->stream());
}

Result<void> CudaExecutor::run(const plan::Plan &plan, CudaInputs &on, Outputs &outputs) {
  return inOrder([&] { return on.clearOutputs(plan.queryCount()); }, [&] { return prepare(plan); },
                 [&] { return enqueue(on); }, [&] { return on.read(plan.queryCount(), outputs); });
}

Result<void> CudaExecutor::runSelecting(const plan::Plan &plan, CudaInputs &on, Outputs &outputs,
                                        Selection &selection) {
  return inOrder([&] { return on.clearOutputs(plan.queryCount()); }, [&] { return prepare(plan); },
                 [&] { return enqueueSelecting(on); }, [&] { return on.read(plan.queryCount(), outputs); },
                 [&] { return plan_->readLists(selection, kernels_->device()->stream()); });
}

Result<void> CudaExecutor::runSparse(CudaInputs &on, Outputs &outputs) {
  return inOrder([&] { return on.clearOutputs(queryCount_); }, [&] { return enqueueSparse(on); },
                 [&] { return on.read(queryCount_, outputs); });
}

Result<void> CudaExecutor::poison() {
  return inOrder([&] { return kernels_->device()->synchronize("the run before"); },
                 [&] { return plan_->poison(); });
}

} // namespace deft::exec
