#include "runtime/exec/cpu/TokenBlocks.h"

#include "runtime/exec/cpu/Grow.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace deft::exec {

int TokenBlocks::mostTokens(const plan::Plan &plan, const abi::Item &item, int ratio,
                            const abi::CpuKernel &kernel) {
  constexpr int kFewRows = 8, kShortBlock = 16;
  const bool isShort = plan.strictChunk == 0 && item.queryCount * ratio <= kFewRows;
  return isShort ? std::min(kShortBlock, kernel.blockTokens) : kernel.blockTokens;
}

void TokenBlocks::reserve(TokenBlock &block, const abi::CpuKernel &kernel) {
  const auto capacity = static_cast<std::size_t>(kernel.blockTokens + abi::kCpuTokenPad);
  for (std::vector<long long> *offsets : {&block.keyOffsets, &block.valueOffsets})
    growTo(*offsets, capacity);
  if (kernel.readsSlots)
    growTo(block.slots, capacity);
  for (std::vector<int> *values : {&block.kvPos, &block.depth, &block.rowLow, &block.rowHigh})
    growTo(*values, capacity);
}

bool TokenBlocks::next(TokenBlock &block) {
  reserve(block, kernel_);
  block.tokens = 0;
  block.rowBegin = block.kvPosLow = block.depthLow = std::numeric_limits<int>::max();
  block.rowEnd = block.kvPosHigh = block.depthHigh = -1;
  for (; run_ < runEnd_ && block.tokens < most_; ++run_, begin_ = 0) {
    const abi::Run &run = plan_.runs[static_cast<std::size_t>(run_)];
    if (run.queryBegin >= run.queryEnd)
      continue;
    const int tokens = std::min(run.tokens - begin_, most_ - block.tokens);
    append(block, run, begin_, tokens);
    begin_ += tokens;
    if (begin_ < run.tokens)
      break; // the block is full
  }
  if (block.tokens == 0)
    return false;
  close(block);
  return true;
}

void TokenBlocks::append(TokenBlock &block, const abi::Run &run, int begin, int tokens) const {
  const auto first = block.tokens, end = first + tokens;
  const int low = (run.queryBegin + run.slope * begin) * ratio_, high = run.queryEnd * ratio_;
  const int kvPos = run.position + begin, rise = run.slope * ratio_; // of rowLow, per token
  block.rowBegin = std::min(block.rowBegin, low);
  block.rowEnd = std::max(block.rowEnd, high);
  block.kvPosLow = std::min(block.kvPosLow, kvPos);
  block.kvPosHigh = std::max(block.kvPosHigh, kvPos + tokens - 1);
  block.depthLow = std::min(block.depthLow, run.depth);
  block.depthHigh = std::max(block.depthHigh, run.depth);
  std::iota(block.kvPos.begin() + first, block.kvPos.begin() + end, kvPos);
  std::fill(block.depth.begin() + first, block.depth.begin() + end, run.depth);
  for (int t = 0; t < tokens; ++t)
    block.rowLow[static_cast<std::size_t>(first + t)] = low + t * rise;
  std::fill(block.rowHigh.begin() + first, block.rowHigh.begin() + end, high);

  // One division per page, not per token.
  long long *keys = block.keyOffsets.data() + first, *values = block.valueOffsets.data() + first;
  const long long keyStride = inputs_.cache.k.tokenStride, valueStride = inputs_.cache.v.tokenStride;
  for (int t = 0, location = run.location + begin; t < tokens;) {
    const int slot = inputs_.pageSize ? location % inputs_.pageSize : 0;
    const int count = inputs_.pageSize ? std::min(tokens - t, inputs_.pageSize - slot) : tokens;
    const long long key = inputs_.keyAt(location, 0), value = inputs_.valueAt(location, 0);
    for (int i = 0; i < count; ++i) {
      keys[t + i] = key + i * keyStride;
      values[t + i] = value + i * valueStride;
    }
    if (kernel_.readsSlots)
      std::iota(block.slots.begin() + first + t, block.slots.begin() + first + t + count,
                inputs_.slotAt(location));
    t += count;
    location += count;
  }
  block.tokens = end;
}

void TokenBlocks::close(TokenBlock &block) const {
  block.rowBegin = block.rowBegin / kernel_.groupRows * kernel_.groupRows;
  // If the last group continues with other rows of the item, these must be masked.
  block.cut = block.rowEnd % kernel_.groupRows != 0 && block.rowEnd < rows_;
  for (int t = 0; t < block.tokens; ++t) {
    const auto at = static_cast<std::size_t>(t);
    block.rowLow[at] -= block.rowBegin;
    block.rowHigh[at] -= block.rowBegin;
    block.cut |= block.rowLow[at] > 0 || block.rowHigh[at] < block.rowEnd - block.rowBegin;
  }
  pad(block, kernel_);
}

void TokenBlocks::pad(TokenBlock &block, const abi::CpuKernel &kernel) {
  const auto last = static_cast<std::size_t>(block.tokens - 1);
  for (std::size_t t = last + 1; t < last + 1 + abi::kCpuTokenPad; ++t) {
    block.keyOffsets[t] = block.keyOffsets[last];
    block.valueOffsets[t] = block.valueOffsets[last];
    block.kvPos[t] = block.kvPos[last];
    block.depth[t] = block.depth[last];
    block.rowLow[t] = block.rowHigh[t] = 0;
  }
  if (kernel.readsSlots)
    std::fill_n(block.slots.begin() + block.tokens, abi::kCpuTokenPad, block.slots[last]);
}

} // namespace deft::exec
