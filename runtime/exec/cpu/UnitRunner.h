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

/// One execution of a plan: the inputs and outputs of all its units.
struct Step {
  const abi::CpuKernel &kernel;
  const spec::Variant &variant;
  const plan::Plan &plan;
  const InputView &inputs;
  const OutputView &outputs;
  float *partialOut;           ///< [slot][query_heads][dim of out]
  float *partialLse;           ///< [slot][query_heads]
  WorthTable *worth = nullptr; ///< filled during the step; null: the variant does not select
};

/// Runs units of work one after the other, in memory of its own. One per thread.
class UnitRunner {
public:
  /// Prepares for the units of a step, which must outlive them; a unit has at most `heads` KV heads.
  /// Allocates only if a step is larger than all before it.
  void prepare(const Step &step, int heads);

  /// Computes all rows of an item for the KV heads [headBegin, headEnd), from the queries to the output or
  /// the partials. It advances through the tokens with all heads together, because their vectors are
  /// neighbours in most caches.
  void attend(const abi::Item &item, int headBegin, int headEnd);

  /// Merges entry `index` of the plan's merge map, for all heads.
  void merge(int index);

private:
  void loadRows(const abi::Item &item, int headBegin, int headEnd);
  /// Prefetches one line of each token of the block after the next. So its pages are translated, and its
  /// first lines are on their way, when the kernels prefetch the rest.
  void announce(const TokenBlock &block, int headBegin) const;
  /// `next` is null after the last block.
  void attendBlock(const TokenBlock &block, const TokenBlock *next, int headBegin, int headEnd);
  /// Lists the vectors of the next block that the `part`-th of `heads` calls should prefetch, as offsets from
  /// the first head's vectors. Sorted by address, so that the hardware's prefetchers join in.
  void listFetches(const TokenBlock &next, int part, int heads);
  static void listFetches(const std::vector<long long> &offsets, const abi::CacheLayout &cache, int tokens,
                          int part, int heads, std::vector<long long> &list);
  int visibility(const TokenBlock &block, int kvHead) const;
  /// Adds the scores of a block to the table of the tokens' worth.
  void collectWorth(const TokenBlock &block, int kvHead);
  void finish(const abi::Item &item, int headBegin, int headEnd);

  std::size_t queryHeads() const { return static_cast<std::size_t>(step_->variant.queryHeads); }
  /// The cache, from the vectors of one KV head on.
  const std::byte *keysOf(int kvHead) const {
    return static_cast<const std::byte *>(step_->inputs.k) +
           kvHead * step_->inputs.cache.k.headStride * step_->variant.tensors.k.elementBytes();
  }
  const std::byte *valuesOf(int kvHead) const {
    return static_cast<const std::byte *>(step_->inputs.v) +
           kvHead * step_->inputs.cache.v.headStride * step_->variant.tensors.v.elementBytes();
  }
  std::size_t outDim() const { return static_cast<std::size_t>(step_->variant.tensors.out.dim); }
  /// The results of a query, from one of its heads on.
  std::uint16_t *outputOf(int caller, std::size_t head) const {
    return step_->outputs.out + caller * outStride_ + static_cast<std::ptrdiff_t>(head * outDim());
  }
  float *lseOf(int caller, std::size_t head) const {
    return step_->outputs.lse ? step_->outputs.lse + static_cast<std::size_t>(caller) * queryHeads() + head
                              : nullptr;
  }
  /// The index of a row of the unit's `head`-th head in arrays with an entry per row and head.
  std::size_t place(int head, int row) const {
    return static_cast<std::size_t>(head) * static_cast<std::size_t>(paddedRows_) +
           static_cast<std::size_t>(row);
  }

  const Step *step_ = nullptr;
  int ratio_ = 0;
  long long qStride_ = 0, outStride_ = 0;
  int rows_ = 0;                     ///< of the current item
  int paddedRows_ = 0;               ///< rounded up to whole groups
  std::array<TokenBlock, 3> blocks_; ///< the current block and the two after it
  std::vector<int> qPos_, query_;    ///< [rows]
  std::vector<int> head_;            ///< [head][rows]
  std::vector<long long> keyFetches_, valueFetches_;
  ScaledRows scaled_;
  std::vector<std::byte> packed_;
  std::vector<float> acc_, m_, l_;
  std::vector<float> scores_; ///< of one block, as kernels write them
};

} // namespace deft::exec
