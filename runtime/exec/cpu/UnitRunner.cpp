#include "runtime/exec/cpu/UnitRunner.h"

#include "runtime/exec/cpu/Grow.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace deft::exec {

void UnitRunner::prepare(const Step &step) {
  step_ = &step;
  ratio_ = step.variant.ratio();
  int queries = 0;
  for (const abi::Item &item : step.plan.items)
    queries = std::max(queries, item.queryCount);
  const std::size_t rows = static_cast<std::size_t>(queries) * static_cast<std::size_t>(ratio_);
  growTo(packed_, rows * static_cast<std::size_t>(step.kernel.packedRowBytes));
  growTo(acc_, rows * headDim());
  for (std::vector<float> *values : {&m_, &l_})
    growTo(*values, rows);
  for (std::vector<int> *values : {&qPos_, &query_, &head_})
    growTo(*values, rows);
  for (std::vector<long long> &offsets : offsets_)
    growTo(offsets, static_cast<std::size_t>(step.kernel.blockTokens));
}

void UnitRunner::attend(const abi::Item &item, int kvHead) {
  loadRows(item, kvHead);
  for (int run = item.runBegin; run < item.runBegin + item.runCount; ++run)
    attendRun(step_->plan.runs[static_cast<std::size_t>(run)], kvHead);
  finish(item, kvHead);
}

void UnitRunner::loadRows(const abi::Item &item, int kvHead) {
  rows_ = item.queryCount * ratio_;
  const auto rows = static_cast<std::ptrdiff_t>(rows_);
  std::fill(acc_.begin(), acc_.begin() + rows * static_cast<std::ptrdiff_t>(headDim()), 0.0f);
  std::fill(m_.begin(), m_.begin() + rows, -std::numeric_limits<float>::infinity());
  std::fill(l_.begin(), l_.begin() + rows, 0.0f);
  for (int i = 0; i < item.queryCount; ++i) {
    const auto planned = static_cast<std::size_t>(item.queryBegin + i);
    const int caller = step_->plan.callerIndex[planned];
    const auto row = static_cast<std::size_t>(i * ratio_);
    const std::size_t first =
        static_cast<std::size_t>(caller) * queryHeads() + static_cast<std::size_t>(kvHead * ratio_);
    const abi::CpuPackCall call{step_->inputs.q + first * headDim(),
                                packed_.data() + row * static_cast<std::size_t>(step_->kernel.packedRowBytes),
                                ratio_, 0};
    step_->kernel.pack(&call);
    for (int group = 0; group < ratio_; ++group) {
      const std::size_t at = row + static_cast<std::size_t>(group);
      qPos_[at] = step_->plan.queryPos[planned];
      query_[at] = caller;
      head_[at] = kvHead * ratio_ + group;
    }
  }
}

UnitRunner::RowBounds UnitRunner::boundsOf(int rowBegin, int rowEnd) const {
  const auto [qPosLow, qPosHigh] = std::minmax_element(qPos_.begin() + rowBegin, qPos_.begin() + rowEnd);
  const auto [queryLow, queryHigh] = std::minmax_element(query_.begin() + rowBegin, query_.begin() + rowEnd);
  return {*qPosLow, *qPosHigh, *queryLow, *queryHigh};
}

/// Element offsets of `tokens` tokens of a run, for KV head 0.
void UnitRunner::fillOffsets(const abi::Run &run, int begin, int tokens, long long *offsets) const {
  for (int t = 0; t < tokens; ++t)
    offsets[t] = step_->inputs.elementOf(run.location + begin + t, 0);
}

int UnitRunner::visibility(const abi::Run &run, const RowBounds &rows, int kvHead, int begin,
                           int tokens) const {
  abi::CpuTileCall call{};
  call.params = step_->inputs.params;
  call.qPosLow = rows.qPosLow;
  call.qPosHigh = rows.qPosHigh;
  call.queryLow = rows.queryLow;
  call.queryHigh = rows.queryHigh;
  call.kvPosLow = run.position + begin;
  call.kvPosHigh = run.position + begin + tokens - 1;
  call.depthLow = call.depthHigh = run.depth;
  call.headLow = kvHead * ratio_;
  call.headHigh = call.headLow + ratio_ - 1;
  call.kvHead = kvHead;
  return step_->kernel.tile(&call);
}

void UnitRunner::attendRun(const abi::Run &run, int kvHead) {
  const int rowBegin = run.queryBegin * ratio_, rowEnd = run.queryEnd * ratio_;
  if (rowBegin >= rowEnd)
    return;
  const bool hasMask = step_->kernel.hasMask != 0;
  const RowBounds bounds = boundsOf(rowBegin, rowEnd);
  const long long headOffset = kvHead * step_->inputs.cache.headStride;
  const auto row = static_cast<std::size_t>(rowBegin);

  abi::CpuAttendCall call{};
  call.packed = packed_.data() + row * static_cast<std::size_t>(step_->kernel.packedRowBytes);
  call.acc = acc_.data() + row * headDim();
  call.m = m_.data() + row;
  call.l = l_.data() + row;
  call.qPos = qPos_.data() + row;
  call.query = query_.data() + row;
  call.head = head_.data() + row;
  call.k = step_->inputs.k + headOffset;
  call.v = step_->inputs.v + headOffset;
  call.params = step_->inputs.params;
  call.rows = rowEnd - rowBegin;
  call.depth = run.depth;
  call.kvHead = kvHead;

  const int block = step_->kernel.blockTokens;
  long long *offsets = offsets_[0].data(), *next = offsets_[1].data();
  fillOffsets(run, 0, std::min(block, run.tokens), offsets);
  for (int begin = 0; begin < run.tokens; begin += block) {
    call.tokens = std::min(block, run.tokens - begin);
    call.nextTokens = std::min(block, run.tokens - begin - call.tokens);
    fillOffsets(run, begin + block, call.nextTokens, next);
    const int seen =
        hasMask ? visibility(run, bounds, kvHead, begin, call.tokens) : abi::kCpuTileAny | abi::kCpuTileAll;
    if (seen & abi::kCpuTileAny) {
      call.masked = (seen & abi::kCpuTileAll) == 0;
      call.kvPos = run.position + begin;
      call.offsets = offsets;
      call.nextOffsets = next;
      step_->kernel.attend(&call);
    }
    std::swap(offsets, next);
  }
}

void UnitRunner::finish(const abi::Item &item, int kvHead) {
  const auto head = static_cast<std::size_t>(kvHead * ratio_);
  for (int i = 0; i < item.queryCount; ++i) {
    const auto row = static_cast<std::size_t>(i * ratio_);
    abi::CpuFinishCall call{};
    call.acc = acc_.data() + row * headDim();
    call.m = m_.data() + row;
    call.l = l_.data() + row;
    call.rows = ratio_;
    if (item.partialBegin >= 0) {
      const std::size_t first = static_cast<std::size_t>(item.partialBegin + i) * queryHeads() + head;
      call.out = step_->partialOut + first * headDim();
      call.lse = step_->kernel.sigmoid ? nullptr : step_->partialLse + first;
      step_->kernel.finishPartial(&call);
    } else {
      const int caller = step_->plan.callerIndex[static_cast<std::size_t>(item.queryBegin + i)];
      const std::size_t first = static_cast<std::size_t>(caller) * queryHeads() + head;
      call.out = step_->outputs.out + first * headDim();
      call.lse = step_->outputs.lse ? step_->outputs.lse + first : nullptr;
      step_->kernel.finish(&call);
    }
  }
}

void UnitRunner::merge(int index) {
  const plan::Plan &plan = step_->plan;
  const auto at = static_cast<std::size_t>(index);
  const int begin = plan.mergeBegin[at];
  const int caller = plan.callerIndex[static_cast<std::size_t>(plan.mergeQuery[at])];
  const std::size_t first = static_cast<std::size_t>(caller) * queryHeads();
  abi::CpuMergeCall call{};
  call.partialOut = step_->partialOut;
  call.partialLse = step_->partialLse;
  call.slots = plan.mergeSlot.data() + begin;
  call.slotCount = plan.mergeBegin[at + 1] - begin;
  call.out = step_->outputs.out + first * headDim();
  call.lse = step_->outputs.lse ? step_->outputs.lse + first : nullptr;
  call.rows = step_->variant.queryHeads;
  step_->kernel.merge(&call);
}

} // namespace deft::exec
