#include "runtime/exec/cpu/SparseRunner.h"

#include "runtime/exec/cpu/Grow.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace deft::exec {

void SparseRunner::prepare(const SparseStep &step) {
  step_ = &step;
  const int group = step.kernel.groupRows, groups = (step.unitRows() + group - 1) / group;
  const auto rows = static_cast<std::size_t>(groups) * static_cast<std::size_t>(group);
  growTo(packed_, static_cast<std::size_t>(groups) * static_cast<std::size_t>(step.kernel.packedGroupBytes));
  growTo(acc_, rows * static_cast<std::size_t>(step.variant.tensors.out.dim));
  for (std::vector<float> *values : {&m_, &l_})
    growTo(*values, rows);
  for (std::vector<int> *values : {&qPos_, &query_, &head_})
    growTo(*values, rows);
  for (TokenBlock &block : blocks_)
    TokenBlocks::reserve(block, step.kernel);
}

void SparseRunner::loadRows(int query, int firstHead, int rows) {
  const spec::Variant &variant = step_->variant;
  const int group = step_->kernel.groupRows, groups = (rows + group - 1) / group;
  std::fill(acc_.begin(), acc_.end(), 0.0f);
  std::fill(m_.begin(), m_.end(), -std::numeric_limits<float>::infinity());
  std::fill(l_.begin(), l_.end(), 0.0f);
  for (int row = 0; row < groups * group; ++row) { // rows that fill up the group repeat the last one
    const auto at = static_cast<std::size_t>(row);
    qPos_[at] = step_->paths.queryPos(query);
    query_[at] = query;
    head_[at] = firstHead + std::min(row, rows - 1);
  }
  std::fill(packed_.begin(), packed_.end(), std::byte{0});
  const long long first = query * rowStrideOf(step_->inputs.qStride, variant, variant.tensors.q) +
                          static_cast<long long>(firstHead) * variant.tensors.q.dim;
  const abi::CpuPackCall call{.q = step_->inputs.q + first,
                              .packed = packed_.data(),
                              .rowBegin = 0,
                              .rows = rows,
                              .qPos = qPos_.front(),
                              .query = query,
                              .head = firstHead,
                              .reserved0 = 0,
                              .params = step_->inputs.params};
  step_->kernel.pack(&call);
}

bool SparseRunner::fill(TokenBlock &block, Walk &walk, int rows) const {
  const InputView &inputs = step_->inputs;
  block.tokens = 0;
  for (; walk.token < walk.list.size() && block.tokens < step_->kernel.blockTokens; ++walk.token) {
    const int position = walk.list[walk.token];
    while (walk.stretch < walk.path.size() &&
           position >= walk.path[walk.stretch].position + walk.path[walk.stretch].tokens)
      ++walk.stretch;
    if (walk.stretch == walk.path.size())
      break;
    const plan::PathStretch &stretch = walk.path[walk.stretch];
    if (position < stretch.position)
      continue; // hidden by the mask that the plan was made for
    const auto at = static_cast<std::size_t>(block.tokens++);
    const int location = stretch.location + position - stretch.position;
    block.keyOffsets[at] = inputs.keyAt(location, 0);
    block.valueOffsets[at] = inputs.valueAt(location, 0);
    if (step_->kernel.readsSlots)
      block.slots[at] = inputs.slotAt(location);
    block.kvPos[at] = position;
    block.depth[at] = stretch.depth;
    block.rowLow[at] = 0;
    block.rowHigh[at] = rows;
  }
  if (block.tokens == 0)
    return false;
  TokenBlocks::pad(block, step_->kernel);
  return true;
}

void SparseRunner::attend(int query, int unit) {
  const spec::Variant &variant = step_->variant;
  const int rows = step_->unitRows(), firstHead = unit * rows, kvHead = firstHead / variant.ratio();
  loadRows(query, firstHead, rows);
  abi::CpuAttendCall call{};
  call.packed = packed_.data();
  call.acc = acc_.data();
  call.m = m_.data();
  call.l = l_.data();
  call.qPos = qPos_.data();
  call.query = query_.data();
  call.head = head_.data();
  call.k = static_cast<const std::byte *>(step_->inputs.k) +
           kvHead * step_->inputs.cache.k.headStride * variant.tensors.k.elementBytes();
  call.v = static_cast<const std::byte *>(step_->inputs.v) +
           kvHead * step_->inputs.cache.v.headStride * variant.tensors.v.elementBytes();
  call.nextK = call.k;
  call.nextV = call.v;
  call.params = step_->inputs.params;
  call.rows = rows;
  call.kvHead = kvHead;
  call.masked = step_->kernel.hasMask;
  Walk walk{step_->selection.of(query, variant.listOf(firstHead)), step_->paths.of(query)};
  TokenBlock *block = &blocks_[0], *next = &blocks_[1];
  for (bool has = fill(*block, walk, rows); has; std::swap(block, next)) {
    has = fill(*next, walk, rows);
    call.keyOffsets = block->keyOffsets.data();
    call.valueOffsets = block->valueOffsets.data();
    call.kvPos = block->kvPos.data();
    call.depth = block->depth.data();
    call.slots = step_->kernel.readsSlots ? block->slots.data() : nullptr;
    call.rowLow = block->rowLow.data();
    call.rowHigh = block->rowHigh.data();
    call.tokens = block->tokens;
    call.nextKeyOffsets = next->keyOffsets.data();
    call.nextValueOffsets = next->valueOffsets.data();
    call.nextTokens = has ? next->tokens : 0;
    step_->kernel.attend(&call);
  }

  abi::CpuFinishCall finish{};
  finish.acc = acc_.data();
  finish.m = m_.data();
  finish.l = l_.data();
  finish.out = step_->outputs.out +
               query * rowStrideOf(step_->outputs.outStride, variant, variant.tensors.out) +
               static_cast<long long>(firstHead) * variant.tensors.out.dim;
  finish.lse = step_->outputs.lse
                   ? step_->outputs.lse + static_cast<long long>(query) * variant.queryHeads + firstHead
                   : nullptr;
  finish.rows = rows;
  finish.head = firstHead;
  finish.params = step_->inputs.params;
  finish.qPos = qPos_.front();
  finish.query = query;
  step_->kernel.finish(&finish);
}

SparseJob::SparseJob(const SparseStep &step, std::vector<SparseRunner> &runners)
    : step_(step), runners_(runners), units_(step.selection.queries * step.unitsPerQuery()) {
  for (SparseRunner &runner : runners)
    runner.prepare(step);
}

int SparseJob::helpers() const {
  constexpr double kLeastNs = 10'000, kBytesPerNs = 10; // of one core, about: tokens lie apart
  const std::vector<std::int32_t> &counts = step_.selection.counts;
  const double perList = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0LL)) /
                         std::max<double>(1, static_cast<double>(counts.size()));
  const double bytes = perList * units_ * step_.variant.tensors.cacheBytes();
  return static_cast<int>(std::min(bytes / kBytesPerNs / kLeastNs, std::max(units_ - 1.0, 0.0)));
}

void SparseJob::run(int slot) noexcept {
  SparseRunner &runner = runners_[static_cast<std::size_t>(slot)];
  const int perQuery = step_.unitsPerQuery();
  for (int unit = next_++; unit < units_; unit = next_++)
    runner.attend(unit / perQuery, unit % perQuery);
}

} // namespace deft::exec
