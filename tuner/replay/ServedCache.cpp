#include "tuner/replay/ServedCache.h"

#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/SizedParams.h"

#include <algorithm>
#include <cstddef>

namespace deft::replay {

using support::Result;
using tree::TokenCopy;

namespace {

/// In all layouts, a token's heads are headStride apart.
void copyTokens(const TokenCopy &copy, const tree::CachePlacement &placement, std::span<const int> physical,
                const spec::Variant &variant, exec::Inputs &inputs) {
  const auto copyIn = [&](auto &memory, const abi::CacheLayout &layout, const spec::TensorType &tensor) {
    auto *const elements = reinterpret_cast<std::byte *>(memory.data());
    const auto at = [&](std::int64_t slot, int head) {
      const long long inHead = head * layout.headStride;
      if (placement.pageSize == 0)
        return elements + (slot * layout.tokenStride + inHead) * tensor.elementBytes();
      const int page = physical[static_cast<std::size_t>(slot / placement.pageSize)];
      return elements + (page * layout.pageStride + slot % placement.pageSize * layout.tokenStride + inHead) *
                            tensor.elementBytes();
    };
    for (int token = 0; token < copy.tokens; ++token)
      for (int head = 0; head < variant.kvHeads; ++head)
        std::copy_n(at(copy.from + token, head), tensor.rowBytes(), at(copy.to + token, head));
  };
  copyIn(inputs.k, inputs.cache.k, variant.tensors.keyRow());
  if (!variant.tensors.valueInKey)
    copyIn(inputs.v, inputs.cache.v, variant.tensors.v);

  // Elements of arrays over tokens move with the token.
  const auto slotAt = [&](std::int64_t slot) {
    if (placement.pageSize == 0)
      return static_cast<std::size_t>(slot);
    const int page = physical[static_cast<std::size_t>(slot / placement.pageSize)];
    return static_cast<std::size_t>(page) * static_cast<std::size_t>(placement.pageSize) +
           static_cast<std::size_t>(slot % placement.pageSize);
  };
  const auto copyElements = [&](auto &elements, std::size_t each) {
    const auto first = [&](std::int64_t slot) {
      return elements.begin() + static_cast<std::ptrdiff_t>(slotAt(slot) * each);
    };
    for (int token = 0; token < copy.tokens && !elements.empty(); ++token)
      std::copy_n(first(copy.from + token), each, first(copy.to + token));
  };
  for (std::size_t i = 0; i < variant.params.size(); ++i)
    if (const spec::Param &param = variant.params[i]; param.isOfTokens()) {
      const auto each = static_cast<std::size_t>(variant.elementsOf(param));
      copyElements(inputs.params[i].f32, each);
      copyElements(inputs.params[i].i32, each);
    }
}

} // namespace

Result<ServedCache> ServedCache::open(TreeSteps &steps, int count, const tree::PlacementOptions &placement) {
  const int first = steps.step();
  auto trial = follow(steps, placement);
  if (!trial)
    return trial;
  for (int i = 1; i < count; ++i) {
    if (const auto moved = steps.next(); !moved)
      return moved.error();
    if (const auto followed = trial->followStep(steps); !followed)
      return followed.error();
  }
  if (auto back = steps.seek(first); !back)
    return back.error();
  auto cache = follow(steps, placement);
  if (!cache)
    return cache;
  cache->pages_ = trial->pages_;
  cache->mostQueries_ = trial->mostQueries_;
  if (auto placed = cache->placePool(); !placed)
    return placed.error();
  return cache;
}

/// From the workload's first step to the current one: node numbers depend on all earlier steps.
Result<ServedCache> ServedCache::follow(TreeSteps &steps, const tree::PlacementOptions &placement) {
  const int first = steps.step();
  constexpr int kMost = tree::KvTree::kMaxTokens;
  auto sequences = tree::SequenceTree::make(
      {.pageSize = placement.pageSize, .pages = kMost / std::max(placement.pageSize, 1)});
  if (!sequences)
    return sequences.error();
  ServedCache cache(std::move(*sequences), placement);
  if (auto begun = steps.seek(1); !begun)
    return begun.error();
  for (;;) {
    if (const auto followed = cache.followStep(steps); !followed)
      return followed.error();
    if (steps.step() == first)
      return cache;
    if (const auto moved = steps.next(); !moved)
      return moved.error();
  }
}

Result<std::vector<TokenCopy>> ServedCache::followStep(const TreeSteps &steps) {
  std::vector<TokenCopy> copies;
  for (const tree::TreeEdit &edit : steps.edits()) {
    const auto made = sequences_.apply(edit);
    if (!made)
      return made.error();
    copies.insert(copies.end(), made->begin(), made->end());
  }
  if (auto set = sequences_.setQueries(steps.tree().queries()); !set)
    return set.error();
  notePages(copies);
  return copies;
}

/// Notes pages that were read or written; the pool takes pages by rising numbers.
void ServedCache::notePages(std::span<const TokenCopy> copies) {
  const int unit = std::max(options_.pageSize, 1);
  const auto note = [&](std::int64_t slot) { pages_ = std::max(pages_, slot / unit + 1); };
  for (const TokenCopy &copy : copies)
    for (std::int64_t slot : {copy.from, copy.to})
      note(slot + copy.tokens - 1);
  for (const tree::Node &node : tree().nodes())
    for (int at = 0; at < node.tokens; at += unit - (node.location + at) % unit)
      note(options_.pageSize == 0 ? std::int64_t{node.location} + node.tokens - 1
                                  : sequences_.pool().slotOf(node.location + at));
  mostQueries_ = std::max(mostQueries_, tree().queries().size());
}

/// Lays out a tree with one node of the pool's size; its pages become the pool's.
Result<void> ServedCache::placePool() {
  const int unit = std::max(options_.pageSize, 1);
  if ((pages_ + 1) * unit > tree::KvTree::kMaxTokens)
    return support::Error{support::ErrorCode::Diagnostics,
                          "the steps need a cache of " + std::to_string(pages_ * unit) + " tokens, at most " +
                              std::to_string(tree::KvTree::kMaxTokens) + " can be laid out",
                          "run fewer steps"};
  if (auto added = pool_.addNode(-1, static_cast<int>((pages_ + 1) * unit)); !added)
    return added.error();
  for (std::size_t i = 0; i < mostQueries_; ++i)
    if (auto added = pool_.addQuery(0); !added)
      return added.error();
  if (options_.pageSize == 0)
    options_.order = tree::PlacementOrder::InOrder; // slots are locations
  auto placement = tree::placeInCache(pool_, options_);
  if (!placement)
    return placement.error();
  placement_ = std::move(*placement);
  // The node may begin inside a page, so it has one more page than needed.
  const auto begin = placement_.pageTable.begin() + (pool_.nodes()[0].location + unit - 1) / unit;
  if (options_.pageSize > 0)
    physical_.assign(begin, begin + pages_);
  return {};
}

Result<void> ServedCache::checkParams(const spec::Variant &variant,
                                      const std::vector<exec::ParamValue> &params) const {
  return exec::checkSizedParams(variant, pool_, params);
}

exec::Inputs ServedCache::makeInputs(const spec::Variant &variant, std::vector<exec::ParamValue> params,
                                     std::uint64_t seed, int threads) {
  exec::Inputs inputs = exec::makeRandomInputs(variant, pool_, placement_, std::move(params), seed, threads);
  setPageTable(inputs);
  return inputs;
}

void ServedCache::setPageTable(exec::Inputs &inputs) const {
  const std::vector<int> &table = sequences_.pool().pageTable();
  inputs.queryCount = static_cast<int>(tree().queries().size());
  inputs.pageTable.resize(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) // no node uses entries without a page
    inputs.pageTable[i] = table[i] < 0 ? 0 : physical_[static_cast<std::size_t>(table[i])];
}

Result<void> ServedCache::next(TreeSteps &steps, const spec::Variant &variant, exec::Inputs &inputs) {
  if (const auto moved = steps.next(); !moved)
    return moved.error();
  const auto copies = followStep(steps);
  if (!copies)
    return copies.error();
  for (const TokenCopy &copy : *copies)
    copyTokens(copy, placement_, physical_, variant, inputs);
  setPageTable(inputs);
  return {};
}

} // namespace deft::replay
