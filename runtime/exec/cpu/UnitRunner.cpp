#include "runtime/exec/cpu/UnitRunner.h"

#include "runtime/exec/cpu/Grow.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace deft::exec {

void UnitRunner::prepare(const Step &step, int heads) {
  step_ = &step;
  ratio_ = step.variant.ratio();
  qStride_ = rowStrideOf(step.inputs.qStride, step.variant, step.variant.tensors.q);
  outStride_ = rowStrideOf(step.outputs.outStride, step.variant, step.variant.tensors.out);
  int queries = 0;
  for (const abi::Item &item : step.plan.items)
    queries = std::max(queries, item.queryCount);
  const int group = step.kernel.groupRows, groups = (queries * ratio_ + group - 1) / group;
  const std::size_t rows = static_cast<std::size_t>(groups) * static_cast<std::size_t>(group);
  const std::size_t rowsOfHeads = rows * static_cast<std::size_t>(heads);
  growTo(packed_,
         static_cast<std::size_t>(groups * heads) * static_cast<std::size_t>(step.kernel.packedGroupBytes));
  growTo(acc_, rowsOfHeads * outDim());
  for (std::vector<float> *values : {&m_, &l_})
    growTo(*values, rowsOfHeads);
  growTo(head_, rowsOfHeads);
  for (std::vector<long long> *fetches : {&keyFetches_, &valueFetches_})
    growTo(*fetches, static_cast<std::size_t>(step.kernel.blockTokens));
  for (std::vector<int> *values : {&qPos_, &query_})
    growTo(*values, rows);
  if (step.worth)
    growTo(scores_, rows * static_cast<std::size_t>(step.kernel.blockTokens));
  for (TokenBlock &block : blocks_)
    TokenBlocks::reserve(block, step.kernel);
  scaled_.prepare(step.variant, step.kernel);
}

void UnitRunner::attend(const abi::Item &item, int headBegin, int headEnd) {
  loadRows(item, headBegin, headEnd);
  TokenBlocks walk(step_->plan, item, step_->inputs, ratio_, step_->kernel);
  TokenBlock *block = &blocks_[0], *next = &blocks_[1], *later = &blocks_[2];
  bool hasBlock = walk.next(*block), hasNext = hasBlock && walk.next(*next);
  while (hasBlock) {
    const bool hasLater = hasNext && walk.next(*later);
    if (hasLater)
      announce(*later, headBegin);
    attendBlock(*block, hasNext ? next : nullptr, headBegin, headEnd);
    std::tie(block, next, later) = std::tuple(next, later, block);
    hasBlock = hasNext;
    hasNext = hasLater;
  }
  finish(item, headBegin, headEnd);
}

void UnitRunner::announce(const TokenBlock &block, int headBegin) const {
  const std::byte *k = keysOf(headBegin), *v = valuesOf(headBegin);
  const int keyBytes = step_->variant.tensors.k.elementBytes(),
            valueBytes = step_->variant.tensors.v.elementBytes();
  for (std::size_t token = 0; token < static_cast<std::size_t>(block.tokens); ++token) {
    __builtin_prefetch(k + block.keyOffsets[token] * keyBytes, /*rw=*/0, /*locality=*/2);
    __builtin_prefetch(v + block.valueOffsets[token] * valueBytes, /*rw=*/0, /*locality=*/2);
  }
}

void UnitRunner::loadRows(const abi::Item &item, int headBegin, int headEnd) {
  const int group = step_->kernel.groupRows;
  rows_ = item.queryCount * ratio_;
  paddedRows_ = (rows_ + group - 1) / group * group;
  const auto all = static_cast<std::ptrdiff_t>(place(headEnd - headBegin, 0));
  std::fill(acc_.begin(), acc_.begin() + all * static_cast<std::ptrdiff_t>(outDim()), 0.0f);
  std::fill(m_.begin(), m_.begin() + all, -std::numeric_limits<float>::infinity());
  std::fill(l_.begin(), l_.begin() + all, 0.0f);
  for (int row = 0; row < paddedRows_; ++row) { // rows that fill up the last group repeat its last row
    const int real = std::min(row, rows_ - 1);
    const auto planned = static_cast<std::size_t>(item.queryBegin + real / ratio_);
    qPos_[static_cast<std::size_t>(row)] = step_->plan.queryPos[planned];
    query_[static_cast<std::size_t>(row)] = step_->plan.callerIndex[planned];
    for (int head = headBegin; head < headEnd; ++head)
      head_[place(head - headBegin, row)] = head * ratio_ + real % ratio_;
  }
  const auto groupBytes = static_cast<std::size_t>(step_->kernel.packedGroupBytes);
  const std::size_t headBytes = static_cast<std::size_t>(paddedRows_ / group) * groupBytes;
  for (int head = headBegin; head < headEnd; ++head) {
    std::byte *packed = packed_.data() + static_cast<std::size_t>(head - headBegin) * headBytes;
    if (paddedRows_ > rows_)
      std::fill_n(packed + headBytes - groupBytes, groupBytes, std::byte{0});
    for (int i = 0; i < item.queryCount; ++i) {
      const long long first = query_[static_cast<std::size_t>(i * ratio_)] * qStride_ +
                              static_cast<long long>(head) * ratio_ * step_->variant.tensors.q.dim;
      const auto row = static_cast<std::size_t>(i * ratio_);
      const abi::CpuPackCall call{.q = step_->inputs.q + first,
                                  .packed = packed,
                                  .rowBegin = i * ratio_,
                                  .rows = ratio_,
                                  .qPos = qPos_[row],
                                  .query = query_[row],
                                  .head = head * ratio_,
                                  .reserved0 = 0,
                                  .params = step_->inputs.params};
      step_->kernel.pack(&call);
    }
  }
}

int UnitRunner::visibility(const TokenBlock &block, int kvHead) const {
  const auto boundsOf = [&](const std::vector<int> &values) {
    const auto [low, high] =
        std::minmax_element(values.begin() + block.rowBegin, values.begin() + block.rowEnd);
    return std::pair(*low, *high);
  };
  abi::CpuTileCall call{};
  call.params = step_->inputs.params;
  std::tie(call.qPosLow, call.qPosHigh) = boundsOf(qPos_);
  std::tie(call.queryLow, call.queryHigh) = boundsOf(query_);
  call.kvPosLow = block.kvPosLow;
  call.kvPosHigh = block.kvPosHigh;
  call.depthLow = block.depthLow;
  call.depthHigh = block.depthHigh;
  call.headLow = kvHead * ratio_;
  call.headHigh = call.headLow + ratio_ - 1;
  call.kvHead = kvHead;
  return step_->kernel.tile(&call);
}

void UnitRunner::attendBlock(const TokenBlock &block, const TokenBlock *next, int headBegin, int headEnd) {
  const auto row = static_cast<std::size_t>(block.rowBegin);
  const auto groupBytes = static_cast<std::size_t>(step_->kernel.packedGroupBytes);
  abi::CpuAttendCall call{};
  call.qPos = qPos_.data() + row;
  call.query = query_.data() + row;
  call.keyOffsets = block.keyOffsets.data();
  call.valueOffsets = block.valueOffsets.data();
  call.kvPos = block.kvPos.data();
  call.depth = block.depth.data();
  call.slots = step_->kernel.readsSlots ? block.slots.data() : nullptr;
  call.rowLow = block.rowLow.data();
  call.rowHigh = block.rowHigh.data();
  call.params = step_->inputs.params;
  call.rows = block.rowEnd - block.rowBegin;
  call.tokens = block.tokens;
  call.cut = block.cut;
  for (int head = headBegin; head < headEnd; ++head) {
    const int seen = step_->kernel.hasMask ? visibility(block, head) : abi::kCpuTileAny | abi::kCpuTileAll;
    if (!(seen & abi::kCpuTileAny))
      continue;
    call.masked = (seen & abi::kCpuTileAll) == 0;
    const std::size_t at = place(head - headBegin, block.rowBegin);
    call.packed = packed_.data() + at / static_cast<std::size_t>(step_->kernel.groupRows) * groupBytes;
    call.acc = acc_.data() + at * outDim();
    call.m = m_.data() + at;
    call.l = l_.data() + at;
    call.head = head_.data() + at;
    call.kvHead = head;
    call.k = keysOf(head);
    call.v = valuesOf(head);
    if (next)
      listFetches(*next, head - headBegin, headEnd - headBegin);
    call.nextK = keysOf(headBegin);
    call.nextV = valuesOf(headBegin);
    call.nextKeyOffsets = keyFetches_.data();
    call.nextValueOffsets = valueFetches_.data();
    call.nextTokens = next ? next->tokens : 0;
    if (step_->variant.tensors.hasScales())
      scaled_.read(step_->variant, keysOf(head), block, call);
    if (step_->worth) {
      const int group = step_->kernel.groupRows, padded = (call.rows + group - 1) / group * group;
      // Also for blocks that the kernel skips.
      std::fill_n(scores_.begin(), padded * step_->kernel.blockTokens, kHiddenWorth);
      call.scores = scores_.data();
    }
    step_->kernel.attend(&call);
    if (step_->worth)
      collectWorth(block, head);
  }
}

void UnitRunner::collectWorth(const TokenBlock &block, int kvHead) {
  const int group = step_->kernel.groupRows, pad = abi::kCpuTokenPad;
  const auto groupScores = static_cast<std::size_t>(group * step_->kernel.blockTokens);
  const bool isByHead = step_->worth->groups == step_->variant.queryHeads;
  for (int row = 0; row < std::min(block.rowEnd, rows_) - block.rowBegin; ++row) {
    const int inItem = block.rowBegin + row;
    const float *scores =
        scores_.data() + static_cast<std::size_t>(row / group) * groupScores + row % group * pad;
    float *worth = step_->worth->of(query_[static_cast<std::size_t>(inItem)],
                                    isByHead ? kvHead * ratio_ + inItem % ratio_ : kvHead);
    for (int t = 0; t < block.tokens; ++t) {
      const float score = worthOfScore(scores[t / pad * group * pad + t % pad]);
      // If the row does not see a token, its own path has another token at that position.
      if (score > kHiddenWorth)
        worth[block.kvPos[static_cast<std::size_t>(t)]] =
            std::max(worth[block.kvPos[static_cast<std::size_t>(t)]], score);
    }
  }
}

void UnitRunner::listFetches(const TokenBlock &next, int part, int heads) {
  const CacheLayouts &cache = step_->inputs.cache;
  listFetches(next.keyOffsets, cache.k, next.tokens, part, heads, keyFetches_);
  listFetches(next.valueOffsets, cache.v, next.tokens, part, heads, valueFetches_);
}

void UnitRunner::listFetches(const std::vector<long long> &offsets, const abi::CacheLayout &cache, int tokens,
                             int part, int heads, std::vector<long long> &list) {
  const long long headStride = cache.headStride;
  const int begin = part * tokens, end = begin + tokens;
  long long *fetches = list.data();
  if (headStride < cache.tokenStride) { // the heads of a token are consecutive
    for (int at = begin, token = begin / heads, head = begin % heads; at < end; ++token, head = 0)
      for (; head < heads && at < end; ++head, ++at)
        *fetches++ = offsets[static_cast<std::size_t>(token)] + head * headStride;
  } else {
    for (int token = 0; token < tokens; ++token)
      *fetches++ = offsets[static_cast<std::size_t>(token)] + part * headStride;
  }
}

void UnitRunner::finish(const abi::Item &item, int headBegin, int headEnd) {
  for (int kvHead = headBegin; kvHead < headEnd; ++kvHead)
    for (int i = 0; i < item.queryCount; ++i) {
      const std::size_t at = place(kvHead - headBegin, i * ratio_);
      const auto head = static_cast<std::size_t>(kvHead * ratio_);
      abi::CpuFinishCall call{};
      call.acc = acc_.data() + at * outDim();
      call.m = m_.data() + at;
      call.l = l_.data() + at;
      call.rows = ratio_;
      call.head = kvHead * ratio_;
      call.params = step_->inputs.params;
      call.qPos = qPos_[static_cast<std::size_t>(i * ratio_)];
      call.query = query_[static_cast<std::size_t>(i * ratio_)];
      if (item.partialBegin >= 0) {
        const std::size_t first = static_cast<std::size_t>(item.partialBegin + i) * queryHeads() + head;
        call.out = step_->partialOut + first * outDim();
        call.lse = step_->kernel.sigmoid ? nullptr : step_->partialLse + first;
        step_->kernel.finishPartial(&call);
      } else {
        const int caller = step_->plan.callerIndex[static_cast<std::size_t>(item.queryBegin + i)];
        call.out = outputOf(caller, head);
        call.lse = lseOf(caller, head);
        step_->kernel.finish(&call);
      }
    }
}

void UnitRunner::merge(int index) {
  const plan::Plan &plan = step_->plan;
  const auto at = static_cast<std::size_t>(index);
  const int begin = plan.mergeBegin[at];
  const int caller = plan.callerIndex[static_cast<std::size_t>(plan.mergeQuery[at])];
  abi::CpuMergeCall call{};
  call.partialOut = step_->partialOut;
  call.partialLse = step_->partialLse;
  call.slots = plan.mergeSlot.data() + begin;
  call.slotCount = plan.mergeBegin[at + 1] - begin;
  call.out = outputOf(caller, 0);
  call.lse = lseOf(caller, 0);
  call.rows = step_->variant.queryHeads;
  call.params = step_->inputs.params;
  call.qPos = plan.queryPos[static_cast<std::size_t>(plan.mergeQuery[at])];
  call.query = caller;
  step_->kernel.merge(&call);
}

} // namespace deft::exec
