#include "runtime/exec/cuda/CudaExecutor.h"

#include "compiler/support/InOrder.h"

namespace deft::exec {

using support::inOrder;
using support::Result;

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(std::shared_ptr<device::Device> device,
                                                           const spec::Variant &variant,
                                                           const package::KernelSet &kernels) {
  auto loaded = CudaKernels::load(std::move(device), variant, kernels);
  if (!loaded)
    return loaded.error();
  auto plan = CudaPlan::create(*loaded, {});
  if (!plan)
    return plan.error();
  return std::unique_ptr<CudaExecutor>(new CudaExecutor(std::move(*loaded), std::move(*plan)));
}

Result<void> CudaExecutor::prepare(const plan::Plan &plan) {
  queryCount_ = plan.queryCount();
  return inOrder([&] { return kernels_->device()->synchronize("the run before"); },
                 [&] { return plan_->setRoom(PlanRoom::of(plan)); }, [&] { return plan_->write(plan); },
                 [&] { return plan_->upload(kernels_->device()->stream()); });
}

Result<void> CudaExecutor::enqueue(const CudaInputs &on) {
  if (auto checked = on.checkQueries(queryCount_); !checked)
    return checked;
  return plan_->run(*kernels_, on.pointers(), kernels_->device()->stream());
}

Result<void> CudaExecutor::run(const plan::Plan &plan, CudaInputs &on, Outputs &outputs) {
  return inOrder([&] { return on.clearOutputs(plan.queryCount()); }, [&] { return prepare(plan); },
                 [&] { return enqueue(on); }, [&] { return on.read(plan.queryCount(), outputs); });
}

Result<void> CudaExecutor::poison() {
  return inOrder([&] { return kernels_->device()->synchronize("the run before"); },
                 [&] { return plan_->poison(); });
}

} // namespace deft::exec
