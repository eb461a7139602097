#include "runtime/exec/cuda/CudaKernels.h"

#include "compiler/kernels/BlocksBeside.h"
#include "compiler/kernels/Occupancy.h"
#include "compiler/kernels/SparsePhase.h"
#include "compiler/support/InOrder.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace deft::exec {

using support::inOrder;
using support::Result;

namespace {

/// Most of a launch of the kernels before and behind the attention: starting a block costs, and blocks that
/// find their work in a loop need not start.
constexpr long long kMergeWaves = 4;

Result<void> load(const std::shared_ptr<device::Device> &device, const package::Kernel &kernel,
                  std::vector<device::Kernel> &into) {
  auto one = device::Kernel::load(device, kernel.cubin, kernel.entry, kernel.threads, kernel.smemBytes);
  if (!one)
    return one.error();
  into.push_back(std::move(*one));
  return {};
}

Result<void> loadPhases(const std::shared_ptr<device::Device> &device,
                        const std::vector<package::Kernel> &kernels, std::vector<device::Kernel> &into) {
  for (const package::Kernel &kernel : kernels)
    if (auto one = load(device, kernel, into); !one)
      return one;
  return {};
}

/// Tokens that a union may have for each of its queries' lists: one of them takes a kernel so much longer
/// than one of a list, where the device writes items and where it does not (H200, 20 branches of 32,000
/// tokens; docs/selection.md).
constexpr double kMostReadWithItems = 0.5, kMostReadWithoutItems = 0.2;
/// Of lists that a caller hands over, a token of a union takes as long as one of a list: a block's rows are
/// the same. Making unions costs, too: leastSavedOfGiven().
constexpr double kMostReadOfGiven = 1;

unsigned blocksFor(long long units, int mostBlocks) {
  return static_cast<unsigned>(std::min<long long>(units, mostBlocks));
}

} // namespace

Result<SelectingCudaKernels> SelectingCudaKernels::load(const std::shared_ptr<device::Device> &device,
                                                        const spec::Variant &variant,
                                                        const package::SelectingKernels &kernels,
                                                        const config::Config &config,
                                                        std::vector<config::SparseCut> sparseCuts) {
  SelectingCudaKernels loaded;
  loaded.sparseCuts_ = std::move(sparseCuts);
  std::sort(loaded.sparseCuts_.begin(), loaded.sparseCuts_.end(),
            [](const config::SparseCut &a, const config::SparseCut &b) {
              return std::pair(a.budget, a.queries) < std::pair(b.budget, b.queries);
            });
  if (kernels.select.has_value() == variant.readsGivenLists())
    return support::Error{support::ErrorCode::Internal,
                          "the kernels of " + variant.called() + " do not belong to its lists", ""};
  auto done = inOrder([&] { return exec::load(device, kernels.sparse, loaded.sparse_); },
                      [&] {
                        return kernels.select ? exec::load(device, *kernels.select, loaded.selecting_)
                                              : Result<void>();
                      },
                      [&] { return loadPhases(device, kernels.attend, loaded.selecting_); });
  if (!done)
    return done.error();
  for (std::size_t p = 0; p < kernels.attend.size(); ++p)
    loaded.mostBlocks_.push_back(kernels::mostBlocks(config.phases[p], loaded.attend(p).blocksAtOnce()));
  loaded.kvHeads_ = variant.kvHeads;
  loaded.sparseUnits_ = std::max(kernels::KernelShape::of(variant).unitsOfItem(), variant.lists());
  loaded.mostSparseBlocks_ = kernels::mostBlocks(kernels.sparsePhase, loaded.sparse().blocksAtOnce());
  loaded.blocksOfList_ = kernels.blocksOfList;
  loaded.cachedKeys_ = kernels.cachedKeys;
  loaded.sparsePhase_ = kernels.sparsePhase;
  if (const auto &uniting = kernels.uniting) {
    done = inOrder([&] { return exec::load(device, uniting->unite, loaded.uniting_); },
                   [&] { return exec::load(device, uniting->attend, loaded.uniting_); });
    if (!done)
      return done.error();
    loaded.blocksOfUnion_ = uniting->blocksOfList;
    // One wave: all parts of a union have as many tokens.
    const bool writesItems = kernels::writesUnionItems(uniting->phase);
    const bool areGiven = variant.readsGivenLists();
    const int mostBits =
        areGiven ? abi::kMostGivenUnited
                 : abi::kMostUnited - (writesItems && variant.mask ? 1 : 0); // sm90/united_lists.cuh, kRead
    loaded.unionShape_ = {.queries = std::min(uniting->phase.tileQ / variant.ratio(), mostBits),
                          .parts = std::max(loaded.united().blocksAtOnce() / variant.kvHeads, 1),
                          .itemsOfPart = writesItems ? variant.kvHeads : 1,
                          .writesItems = writesItems,
                          .mostRead = areGiven      ? kMostReadOfGiven
                                      : writesItems ? kMostReadWithItems
                                                    : kMostReadWithoutItems,
                          .areGiven = areGiven,
                          .mostListed = areGiven ? abi::kMostGivenListed : 0,
                          .leastSaved =
                              areGiven ? leastSavedOfGiven(config.cost, loaded.united().blocksAtOnce()) : 0};
  }
  return loaded;
}

Result<void> SelectingCudaKernels::launchSelect(int lists, int positions, void **params,
                                                device::cu::Stream stream) const {
  constexpr int kUnit = 1024; // as SelectShape::of has it
  const int ofBlock = (positions + blocksOfList_ - 1) / blocksOfList_;
  const int part = (ofBlock + kUnit - 1) / kUnit * kUnit;
  return select().launchClusters(static_cast<unsigned>(lists * blocksOfList_), blocksOfList_, params, stream,
                                 4 * std::max(cachedKeys_ - part, 0));
}

unsigned SelectingCudaKernels::unitedBlocks(int items) const {
  return blocksFor(static_cast<long long>(items) * (unionShape_.writesItems ? 1 : kvHeads_),
                   united().blocksAtOnce());
}

unsigned SelectingCudaKernels::attendBlocks(std::size_t phase, int items) const {
  return blocksFor(static_cast<long long>(items) * kvHeads_, mostBlocks_[phase]);
}

unsigned SelectingCudaKernels::sparseBlocks(int items) const {
  return blocksFor(static_cast<long long>(items) * sparseUnits_, mostSparseBlocks_);
}

Result<std::shared_ptr<const CudaKernels>> CudaKernels::load(std::shared_ptr<device::Device> device,
                                                             const spec::Variant &variant,
                                                             const package::KernelSet &kernels,
                                                             std::vector<config::SparseCut> sparseCuts) {
  std::shared_ptr<CudaKernels> loaded(new CudaKernels(device, variant, kernels.config));
  if (variant.query.has_value() != kernels.query.has_value())
    return support::Error{support::ErrorCode::Internal,
                          "the kernels of " + variant.called() + " do not belong to its hook of q", ""};
  auto done = inOrder(
      [&] { return loadPhases(device, kernels.attend, loaded->attend_); },
      [&] { return exec::load(device, kernels.merge, loaded->merge_); },
      [&] { return kernels.query ? exec::load(device, *kernels.query, loaded->query_) : Result<void>(); });
  if (!done)
    return done.error();
  for (std::size_t p = 0; p < loaded->attend_.size(); ++p)
    loaded->mostBlocks_.push_back(
        kernels::mostBlocks(kernels.config.phases[p], loaded->attend_[p].blocksAtOnce()));
  if (kernels.selecting) {
    auto selecting = SelectingCudaKernels::load(device, variant, *kernels.selecting, kernels.config,
                                                std::move(sparseCuts));
    if (!selecting)
      return selecting.error();
    loaded->selecting_.emplace(std::move(*selecting));
  }
  return std::shared_ptr<const CudaKernels>(std::move(loaded));
}

int CudaKernels::blocksAtOnce() const {
  int fewest = attend_.front().blocksAtOnce();
  for (const device::Kernel &kernel : attend_)
    fewest = std::min(fewest, kernel.blocksAtOnce());
  return fewest;
}

bool CudaKernels::readByTensorMap() const { return kernels::readsByTensorMap(config_); }

unsigned CudaKernels::attendBlocks(std::size_t phase, int items) const {
  return blocksFor(static_cast<long long>(items) * kernels::KernelShape::of(variant_).unitsOfItem(),
                   mostBlocks_[phase]);
}

unsigned CudaKernels::mergeBlocks(int mergedQueries) const {
  const long long rows = static_cast<long long>(mergedQueries) * variant_.queryHeads;
  const long long atOnce = merge().blocksAtOnce();
  if (rows <= atOnce)
    return static_cast<unsigned>(rows); // the warps of a block then share a row
  const long long blocks = (rows + kernels::kMergeWarps - 1) / kernels::kMergeWarps;
  return static_cast<unsigned>(std::min(blocks, kMergeWaves * atOnce));
}

unsigned CudaKernels::queryBlocks(int queries) const {
  const int heads = kernels::queryHeadsOfWarp(variant_.tensors.k.dim);
  const long long warps = static_cast<long long>(queries) * ((variant_.queryHeads + heads - 1) / heads);
  const long long blocks = (warps + kernels::kQueryWarps - 1) / kernels::kQueryWarps;
  return static_cast<unsigned>(std::clamp<long long>(blocks, 1, kMergeWaves * query_.front().blocksAtOnce()));
}

Result<std::unique_ptr<const CudaParams>> CudaParams::upload(std::shared_ptr<device::Device> device,
                                                             const spec::Variant &variant,
                                                             const std::vector<ParamValue> &values) {
  std::unique_ptr<CudaParams> params(new CudaParams(std::move(device)));
  std::vector<abi::ParamSlot> &slots = params->slots_;
  slots.resize(std::max<std::size_t>(values.size(), 1));
  for (const ParamValue &value : values)
    params->counts_.push_back(countOf(value));
  std::vector<abi::ParamSlot> arrays; // all arrays in one buffer, each from an 8-byte boundary
  std::vector<std::size_t> firstSlot(values.size());
  const auto isArray = [&](std::size_t i) { return variant.params[i].shape != spec::Param::Shape::Scalar; };
  const auto isElsewhere = [&](std::size_t i) { return values[i].device != nullptr; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (isElsewhere(i)) {
      slots[i].bits = reinterpret_cast<std::uintptr_t>(values[i].device);
      continue;
    }
    slots[i] = slotOf(variant.params[i], values[i]);
    if (!isArray(i))
      continue;
    firstSlot[i] = arrays.size();
    const bool isF32 = variant.params[i].type == spec::ScalarType::F32;
    const std::size_t count = isF32 ? values[i].f32.size() : values[i].i32.size();
    arrays.resize(arrays.size() + (count + 1) / 2);
    auto *to = reinterpret_cast<char *>(&arrays[firstSlot[i]]);
    const auto *from = isF32 ? reinterpret_cast<const char *>(values[i].f32.data())
                             : reinterpret_cast<const char *>(values[i].i32.data());
    std::copy(from, from + 4 * count, to);
  }
  if (arrays.empty())
    return std::unique_ptr<const CudaParams>(std::move(params));
  if (auto uploaded = params->arrays_.upload(arrays, "the parameters"); !uploaded)
    return uploaded.error();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (isArray(i) && !isElsewhere(i)) // the slot's bits are the pointer, whatever it points to
      slots[i].f32Array =
          reinterpret_cast<const float *>(params->arrays_.as<abi::ParamSlot>() + firstSlot[i]);
  return std::unique_ptr<const CudaParams>(std::move(params));
}

} // namespace deft::exec
