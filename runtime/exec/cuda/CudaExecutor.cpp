#include "runtime/exec/cuda/CudaExecutor.h"

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// The first failure of several steps.
template <typename... Steps> Result<void> inOrder(Steps... steps) {
  Result<void> result;
  ((result = steps(), result.ok()) && ...);
  return result;
}

} // namespace

CudaExecutor::CudaExecutor(std::shared_ptr<const CudaKernels> kernels)
    : device_(kernels->device()), kernels_(std::move(kernels)), q_(device_), k_(device_), v_(device_),
      pageTable_(device_), out_(device_), lse_(device_) {}

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(std::shared_ptr<device::Device> device,
                                                           const spec::Variant &variant,
                                                           const module_cache::KernelSet &kernels) {
  auto loaded = CudaKernels::load(std::move(device), variant, kernels);
  if (!loaded)
    return loaded.error();
  auto plan = CudaPlan::create(*loaded, {});
  if (!plan)
    return plan.error();
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(std::move(*loaded)));
  executor->plan_ = std::move(*plan);
  return executor;
}

Result<void> CudaExecutor::load(const Inputs &inputs) {
  queryCount_ = inputs.queryCount;
  if (auto idle = device_->synchronize("the run before"); !idle)
    return idle;
  auto params = CudaParams::upload(device_, variant(), inputs.params);
  if (!params)
    return params.error();
  params_ = std::move(*params);
  auto loaded = inOrder([&] { return q_.upload(inputs.q, "the queries"); },
                        [&] { return k_.upload(inputs.k, "the K cache"); },
                        [&] { return v_.upload(inputs.v, "the V cache"); },
                        [&] { return pageTable_.upload(inputs.pageTable, "the page table"); });
  pointers_.q = q_.as<void>();
  pointers_.k = k_.as<void>();
  pointers_.v = v_.as<void>();
  pointers_.pageTable = pageTable_.as<int>();
  pointers_.pages = static_cast<int>(inputs.pageTable.size());
  pointers_.cache = inputs.cache;
  pointers_.params = params_.get();
  return loaded;
}

Result<void> CudaExecutor::prepare(const plan::Plan &plan) {
  if (plan.queryCount() != queryCount_)
    return Error{ErrorCode::Internal,
                 "the plan has " + std::to_string(plan.queryCount()) + " queries, the inputs have " +
                     std::to_string(queryCount_),
                 ""};
  if (auto idle = device_->synchronize("the run before"); !idle)
    return idle;
  const std::size_t rows = static_cast<std::size_t>(queryCount_) * variant().queryHeads;
  const std::size_t outBytes = rows * variant().headDim * sizeof(std::uint16_t);
  auto prepared =
      inOrder([&] { return out_.reserve(outBytes, "the output"); }, [&] { return out_.fill(0xff, outBytes); },
              [&] { return lse_.reserve(rows * sizeof(float), "the lse"); },
              [&] { return lse_.fill(0xff, rows * sizeof(float)); },
              [&] { return plan_->setRoom(PlanRoom::of(plan)); }, [&] { return plan_->write(plan); },
              [&] { return plan_->upload(device_->stream()); });
  pointers_.out = out_.as<void>();
  pointers_.lse = variant().withLse ? lse_.as<float>() : nullptr;
  return prepared;
}

Result<void> CudaExecutor::poisonInputs() {
  return inOrder([&] { return device_->synchronize("the run before"); }, [&] { return q_.fill(0xff); },
                 [&] { return k_.fill(0xff); }, [&] { return v_.fill(0xff); },
                 [&] { return pageTable_.fill(0xff); });
}

Result<void> CudaExecutor::poison() {
  return inOrder([&] { return device_->synchronize("the run before"); }, [&] { return plan_->poison(); },
                 [&] { return out_.fill(0xff); }, [&] { return lse_.fill(0xff); });
}

Result<void> CudaExecutor::read(Outputs &outputs) {
  const std::size_t rows = static_cast<std::size_t>(queryCount_) * variant().queryHeads;
  outputs.out.resize(rows * variant().headDim);
  outputs.lse.resize(variant().withLse ? rows : 0);
  return inOrder(
      [&] { return device_->synchronize("the attention of `" + variant().name + "` failed"); },
      [&] { return out_.download(outputs.out.data(), outputs.out.size() * sizeof(std::uint16_t)); },
      [&] { return lse_.download(outputs.lse.data(), outputs.lse.size() * sizeof(float)); });
}

} // namespace deft::exec
