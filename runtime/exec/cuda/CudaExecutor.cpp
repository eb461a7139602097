#include "runtime/exec/cuda/CudaExecutor.h"

#include "compiler/config/SharedMemory.h"

#include <algorithm>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// Starting a block costs, and blocks that find their work in a loop need not start. Of the sm80 family
/// some waves are kept, because the hardware then hands out the lighter units as blocks end; blocks of
/// the sm90 family copy a unit's tokens while they compute the one before, so they live on.
int mostWaves(const config::PhaseConfig &phase) { return phase.family == config::Family::Sm90 ? 1 : 8; }

/// The first failure of several steps.
template <typename... Steps> Result<void> inOrder(Steps... steps) {
  Result<void> result;
  ((result = steps(), result.ok()) && ...);
  return result;
}

} // namespace

CudaExecutor::CudaExecutor(std::shared_ptr<device::Device> device, const spec::Variant &variant)
    : device_(device), variant_(variant), q_(device), k_(device), v_(device), pageTable_(device),
      paramArrays_(device), out_(device), lse_(device), partialOut_(device), partialLse_(device),
      items_(device), runs_(device), callerIndex_(device), queryPos_(device), mergeQuery_(device),
      mergeBegin_(device), mergeSlot_(device) {}

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(std::shared_ptr<device::Device> device,
                                                           const spec::Variant &variant,
                                                           const module_cache::KernelSet &kernels) {
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(device, variant));
  const auto load = [&](const module_cache::Kernel &kernel,
                        std::vector<device::Kernel> &into) -> Result<void> {
    auto loaded = device::Kernel::load(device, kernel.cubin, kernel.entry, kernel.threads, kernel.smemBytes);
    if (!loaded)
      return loaded.error();
    into.push_back(std::move(*loaded));
    return {};
  };
  for (const module_cache::Kernel &kernel : kernels.attend)
    if (auto loaded = load(kernel, executor->attend_); !loaded)
      return loaded.error();
  if (auto loaded = load(kernels.merge, executor->merge_); !loaded)
    return loaded.error();
  for (std::size_t p = 0; p < executor->attend_.size(); ++p)
    executor->mostBlocks_.push_back(mostWaves(kernels.config.phases[p]) *
                                    executor->attend_[p].blocksAtOnce());
  return executor;
}

int CudaExecutor::blocksAtOnce() const {
  int fewest = attend_.front().blocksAtOnce();
  for (const device::Kernel &kernel : attend_)
    fewest = std::min(fewest, kernel.blocksAtOnce());
  return fewest;
}

Result<void> CudaExecutor::uploadParams(const Inputs &inputs) {
  params_ = inputs.paramSlots(variant_);
  std::vector<abi::ParamSlot> arrays; // all arrays in one buffer, each from an 8-byte boundary
  std::vector<std::size_t> firstSlot(params_.size());
  const auto isArray = [&](std::size_t i) { return variant_.params[i].shape != spec::Param::Shape::Scalar; };
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (!isArray(i))
      continue;
    firstSlot[i] = arrays.size();
    const ParamValue &value = inputs.params[i];
    const bool isF32 = variant_.params[i].type == spec::ScalarType::F32;
    const std::size_t count = isF32 ? value.f32.size() : value.i32.size();
    arrays.resize(arrays.size() + (count + 1) / 2);
    auto *to = reinterpret_cast<char *>(&arrays[firstSlot[i]]);
    const auto *from = isF32 ? reinterpret_cast<const char *>(value.f32.data())
                             : reinterpret_cast<const char *>(value.i32.data());
    std::copy(from, from + 4 * count, to);
  }
  if (auto uploaded = paramArrays_.upload(arrays, "the parameters"); !uploaded)
    return uploaded;
  for (std::size_t i = 0; i < params_.size(); ++i)
    if (isArray(i)) // the slot's bits are the pointer, whatever it points to
      params_[i].f32Array = reinterpret_cast<const float *>(paramArrays_.as<abi::ParamSlot>() + firstSlot[i]);
  if (params_.empty())
    params_.push_back({});
  return {};
}

Result<void> CudaExecutor::load(const Inputs &inputs) {
  queryCount_ = inputs.queryCount;
  auto loaded = inOrder([&] { return q_.upload(inputs.q, "the queries"); },
                        [&] { return k_.upload(inputs.k, "the K cache"); },
                        [&] { return v_.upload(inputs.v, "the V cache"); },
                        [&] { return pageTable_.upload(inputs.pageTable, "the page table"); },
                        [&] { return uploadParams(inputs); });
  attendArgs_.q = q_.as<void>();
  attendArgs_.k = k_.as<void>();
  attendArgs_.v = v_.as<void>();
  attendArgs_.pageTable = pageTable_.as<int>();
  attendArgs_.cache = inputs.cache;
  return loaded;
}

Result<void> CudaExecutor::prepare(const plan::Plan &plan) {
  if (plan.queryCount() != queryCount_)
    return Error{ErrorCode::Internal,
                 "the plan has " + std::to_string(plan.queryCount()) + " queries, the inputs have " +
                     std::to_string(queryCount_),
                 ""};
  if (plan.phases.size() != attend_.size())
    return Error{ErrorCode::Internal,
                 "the plan has " + std::to_string(plan.phases.size()) + " phases, there are kernels for " +
                     std::to_string(attend_.size()),
                 ""};
  const std::size_t rows = static_cast<std::size_t>(queryCount_) * variant_.queryHeads;
  const std::size_t outBytes = rows * variant_.headDim * sizeof(std::uint16_t);
  const std::size_t partialRows = static_cast<std::size_t>(plan.partialSlots) * variant_.queryHeads;
  auto prepared = inOrder(
      [&] { return out_.reserve(outBytes, "the output"); }, [&] { return out_.fill(0xff, outBytes); },
      [&] { return lse_.reserve(rows * sizeof(float), "the lse"); },
      [&] { return lse_.fill(0xff, rows * sizeof(float)); },
      [&] {
        return partialOut_.reserve(partialRows * variant_.headDim * sizeof(float), "the partial outputs");
      },
      [&] { return partialLse_.reserve(partialRows * sizeof(float), "the partial lse"); },
      [&] { return items_.upload(plan.items, "the items"); },
      [&] { return runs_.upload(plan.runs, "the runs"); },
      [&] { return callerIndex_.upload(plan.callerIndex, "the query order"); },
      [&] { return queryPos_.upload(plan.queryPos, "the query positions"); },
      [&] { return mergeQuery_.upload(plan.mergeQuery, "the merge map"); },
      [&] { return mergeBegin_.upload(plan.mergeBegin, "the merge map"); },
      [&] { return mergeSlot_.upload(plan.mergeSlot, "the merge map"); });
  phases_ = plan.phases;

  float *lse = variant_.withLse ? lse_.as<float>() : nullptr;
  attendArgs_.out = out_.as<void>();
  attendArgs_.lse = lse;
  attendArgs_.partialOut = partialOut_.as<float>();
  attendArgs_.partialLse = partialLse_.as<float>();
  attendArgs_.items = items_.as<abi::Item>();
  attendArgs_.runs = runs_.as<abi::Run>();
  attendArgs_.callerIndex = callerIndex_.as<int>();
  attendArgs_.queryPos = queryPos_.as<int>();

  mergeArgs_.out = out_.as<void>();
  mergeArgs_.lse = lse;
  mergeArgs_.partialOut = partialOut_.as<float>();
  mergeArgs_.partialLse = partialLse_.as<float>();
  mergeArgs_.callerIndex = callerIndex_.as<int>();
  mergeArgs_.mergeQuery = mergeQuery_.as<int>();
  mergeArgs_.mergeBegin = mergeBegin_.as<int>();
  mergeArgs_.mergeSlot = mergeSlot_.as<int>();
  mergeArgs_.mergeCount = static_cast<int>(plan.mergeQuery.size());
  return prepared;
}

Result<void> CudaExecutor::enqueue() {
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    abi::AttendArgs args = attendArgs_;
    args.itemBegin = phases_[p].itemBegin;
    args.itemCount = phases_[p].itemCount;
    const long long units = static_cast<long long>(args.itemCount) * variant_.kvHeads;
    const long long blocks = std::min<long long>(units, mostBlocks_[p]);
    void *params[] = {&args, params_.data()};
    if (auto launched = attend_[p].launch(static_cast<unsigned>(blocks), params); !launched)
      return launched;
  }
  const long long warps = static_cast<long long>(mergeArgs_.mergeCount) * variant_.queryHeads;
  const long long mergeBlocks = (warps + config::kMergeWarps - 1) / config::kMergeWarps;
  void *params[] = {&mergeArgs_};
  return merge_.front().launch(static_cast<unsigned>(mergeBlocks), params);
}

Result<void> CudaExecutor::read(Outputs &outputs) {
  const std::size_t rows = static_cast<std::size_t>(queryCount_) * variant_.queryHeads;
  outputs.out.resize(rows * variant_.headDim);
  outputs.lse.resize(variant_.withLse ? rows : 0);
  return inOrder(
      [&] { return device_->synchronize("the attention of `" + variant_.name + "` failed"); },
      [&] { return out_.download(outputs.out.data(), outputs.out.size() * sizeof(std::uint16_t)); },
      [&] { return lse_.download(outputs.lse.data(), outputs.lse.size() * sizeof(float)); });
}

} // namespace deft::exec
