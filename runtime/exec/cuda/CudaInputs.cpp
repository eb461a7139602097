#include "runtime/exec/cuda/CudaInputs.h"

#include "compiler/support/InOrder.h"

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::inOrder;
using support::Result;

CudaInputs::CudaInputs(std::shared_ptr<device::Device> device, const spec::Variant &variant)
    : device_(std::move(device)), variant_(variant), q_(device_), k_(device_), v_(device_),
      pageTable_(device_), lists_(device_), out_(device_), lse_(device_) {}

std::size_t CudaInputs::rows(int queryCount) const {
  return static_cast<std::size_t>(queryCount) * static_cast<std::size_t>(variant_.queryHeads);
}
std::size_t CudaInputs::outBytes(int queryCount) const {
  return rows(queryCount) * static_cast<std::size_t>(variant_.tensors.out.rowBytes());
}
std::size_t CudaInputs::lseBytes(int queryCount) const {
  return variant_.withLse ? rows(queryCount) * sizeof(float) : 0;
}

Result<void> CudaInputs::load(const Inputs &inputs) {
  if (auto idle = device_->synchronize("the run before"); !idle)
    return idle;
  auto params = CudaParams::upload(device_, variant_, inputs.params);
  if (!params)
    return params.error();
  params_ = std::move(*params);
  auto loaded = inOrder([&] { return q_.upload(inputs.q, "the queries"); },
                        [&] { return k_.upload(inputs.k, "the K cache"); },
                        [&] { return v_.upload(inputs.v, "the V cache"); },
                        [&] { return pageTable_.upload(inputs.pageTable, "the page table"); },
                        [&] { return out_.reserve(outBytes(inputs.queryCount), "the output"); },
                        [&] { return lse_.reserve(lseBytes(inputs.queryCount), "the lse"); });
  queryCount_ = loaded ? inputs.queryCount : 0;
  pointers_ = {.q = q_.as<void>(),
               .k = k_.as<void>(),
               .v = v_.as<void>(),
               .pageTable = pageTable_.as<int>(),
               .pages = static_cast<int>(inputs.pageTable.size()),
               .cache = inputs.cache,
               .qStride = inputs.qStride,
               .out = out_.as<void>(),
               .lse = variant_.withLse ? lse_.as<float>() : nullptr,
               .params = params_.get()};
  return loaded;
}

Result<void> CudaInputs::loadLists(const GivenLists &lists) {
  if (auto idle = device_->synchronize("the run before"); !idle)
    return idle;
  const std::vector<std::int32_t> slots(
      lists.slots, lists.slots + static_cast<std::ptrdiff_t>(lists.queries) * lists.budget);
  auto loaded = lists_.upload(slots, "lists of tokens");
  pointers_.lists = loaded ? lists_.as<int>() : nullptr;
  return loaded;
}

Result<void> CudaInputs::checkQueries(int queryCount) const {
  if (queryCount <= queryCount_)
    return {};
  return Error{ErrorCode::Internal,
               "the plan has " + std::to_string(queryCount) + " queries, the inputs have " +
                   std::to_string(queryCount_),
               ""};
}

Result<void> CudaInputs::clearOutputs(int queryCount) {
  return inOrder([&] { return checkQueries(queryCount); },
                 [&] { return device_->synchronize("the run before"); },
                 [&] { return out_.fill(0xff, outBytes(queryCount)); },
                 [&] { return lse_.fill(0xff, lseBytes(queryCount)); });
}

Result<void> CudaInputs::read(int queryCount, Outputs &outputs) const {
  if (auto checked = checkQueries(queryCount); !checked)
    return checked;
  outputs.out.resize(outBytes(queryCount) / sizeof(std::uint16_t));
  outputs.lse.resize(lseBytes(queryCount) / sizeof(float));
  return inOrder([&] { return device_->synchronize("the attention of " + variant_.called() + " failed"); },
                 [&] { return out_.download(outputs.out.data(), outBytes(queryCount)); },
                 [&] { return lse_.download(outputs.lse.data(), lseBytes(queryCount)); });
}

Result<void> CudaInputs::poisonInputs() {
  return inOrder([&] { return device_->synchronize("the run before"); }, [&] { return q_.fill(0xff); },
                 [&] { return k_.fill(0xff); }, [&] { return v_.fill(0xff); },
                 [&] { return pageTable_.fill(0xff); });
}

Result<void> CudaInputs::poisonOutputs() {
  return inOrder([&] { return device_->synchronize("the run before"); }, [&] { return out_.fill(0xff); },
                 [&] { return lse_.fill(0xff); });
}

} // namespace deft::exec
