#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/ScaledRows.h"
#include "runtime/exec/cpu/TokenBlocks.h"
#include "runtime/exec/cpu/Worth.h"
#include "runtime/plan/Plan.h"
#include "templates/deft/cpu_abi.h"

#include <array>
#include <cstddef>
#include <vector>

namespace deft::exec {

/// One execution of a plan: what all of its units read and where they write.
struct Step {
  const abi::CpuKernel &kernel;
  const spec::Variant &variant;
  const plan::Plan &plan;
  const InputView &inputs;
  const OutputView &outputs;
  float *partialOut;           ///< [slot][query_heads][dim of out]
  float *partialLse;           ///< [slot][query_heads]
  WorthTable *worth = nullptr; ///< collected on the way; null: nobody selects
};

/// Runs units of work, one after the other, in memory of its own. One per thread.
class UnitRunner {
public:
  /// Makes ready for the units of a step, which must outlive them; a unit has at most `heads` KV heads.
  /// Allocates only where a step is larger than all before.
  void prepare(const Step &step, int heads);

  /// All rows of an item that belong to the KV heads [headBegin, headEnd), from the queries to the output or
  /// the partials. Heads go side by side through the tokens, because their vectors lie side by side in most
  /// caches.
  void attend(const abi::Item &item, int headBegin, int headEnd);

  /// Entry `index` of the plan's merge map, all heads.
  void merge(int index);

private:
  void loadRows(const abi::Item &item, int headBegin, int headEnd);
  /// Asks for one line of each token of the block after the next: its pages are then translated, and their
  /// first lines on the way, when the kernels ask for the rest.
  void announce(const TokenBlock &block, int headBegin) const;
  /// `next` is null behind the last block.
  void attendBlock(const TokenBlock &block, const TokenBlock *next, int headBegin, int headEnd);
  /// The vectors of the next block that the `part`-th of `heads` calls is to ask for, in the order in which
  /// they lie in memory, so that the hardware's prefetchers join in: offsets from the first head's vectors.
  void listFetches(const TokenBlock &next, int part, int heads);
  static void listFetches(const std::vector<long long> &offsets, const abi::CacheLayout &cache, int tokens,
                          int part, int heads, std::vector<long long> &list);
  int visibility(const TokenBlock &block, int kvHead) const;
  /// Enters the scores of a block into the table of what tokens are worth.
  void collectWorth(const TokenBlock &block, int kvHead);
  void finish(const abi::Item &item, int headBegin, int headEnd);

  std::size_t queryHeads() const { return static_cast<std::size_t>(step_->variant.queryHeads); }
  /// The cache at a KV head's offset.
  const std::byte *keysOf(int kvHead) const {
    return static_cast<const std::byte *>(step_->inputs.k) +
           kvHead * step_->inputs.cache.k.headStride * step_->variant.tensors.k.elementBytes();
  }
  const std::byte *valuesOf(int kvHead) const {
    return static_cast<const std::byte *>(step_->inputs.v) +
           kvHead * step_->inputs.cache.v.headStride * step_->variant.tensors.v.elementBytes();
  }
  std::size_t outDim() const { return static_cast<std::size_t>(step_->variant.tensors.out.dim); }
  /// Where a query's results go, from one of its heads on.
  std::uint16_t *outputOf(int caller, std::size_t head) const {
    return step_->outputs.out + caller * outStride_ + static_cast<std::ptrdiff_t>(head * outDim());
  }
  float *lseOf(int caller, std::size_t head) const {
    return step_->outputs.lse ? step_->outputs.lse + static_cast<std::size_t>(caller) * queryHeads() + head
                              : nullptr;
  }
  /// Where a row of the unit's `head`-th head stands in the arrays that have an entry a row and head.
  std::size_t place(int head, int row) const {
    return static_cast<std::size_t>(head) * static_cast<std::size_t>(paddedRows_) +
           static_cast<std::size_t>(row);
  }

  const Step *step_ = nullptr;
  int ratio_ = 0;
  long long qStride_ = 0, outStride_ = 0;
  int rows_ = 0;                     ///< of the item at hand
  int paddedRows_ = 0;               ///< in whole groups
  std::array<TokenBlock, 3> blocks_; ///< the one at hand and the two behind it
  std::vector<int> qPos_, query_;    ///< [rows]
  std::vector<int> head_;            ///< [head][rows]
  std::vector<long long> keyFetches_, valueFetches_;
  ScaledRows scaled_;
  std::vector<std::byte> packed_;
  std::vector<float> acc_, m_, l_;
  std::vector<float> scores_; ///< of a block, as kernels leave them
};

} // namespace deft::exec
