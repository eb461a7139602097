#include "runtime/exec/cpu/SparseRunner.h"

#include "runtime/exec/cpu/Grow.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace deft::exec {

namespace {

/// Tokens of a part: enough that its fixed cost is small.
constexpr std::size_t kPartTokens = 512;
/// Limit for the results of all parts. With more, there are enough units for all threads without parts.
constexpr std::size_t kMostPartialBytes = std::size_t{16} << 20;

int mostParts(const SparseStep &step) {
  int most = 1;
  for (int query = 0; query < step.selection.queries; ++query)
    for (int unit = 0; unit < step.unitsPerQuery(); ++unit)
      most = std::max(most, step.partsOf(query, unit));
  return most;
}

} // namespace

int SparseStep::partsOf(int query, int unit) const {
  const std::size_t tokens = listOf(query, unit).size();
  return static_cast<int>(std::max<std::size_t>((tokens + kPartTokens - 1) / kPartTokens, 1));
}

void SparseRunner::prepare(const SparseStep &step, int parts) {
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
  scaled_.prepare(step.variant, step.kernel);
  const auto partialRows =
      static_cast<std::size_t>(parts) * static_cast<std::size_t>(step.variant.queryHeads);
  growTo(partialOut_, partialRows * static_cast<std::size_t>(step.variant.tensors.out.dim));
  growTo(partialLse_, partialRows);
  growTo(slots_, static_cast<std::size_t>(parts));
}

void SparseRunner::loadRows(int query, int firstHead, int rows) {
  const spec::Variant &variant = step_->variant;
  const int group = step_->kernel.groupRows, groups = (rows + group - 1) / group;
  std::fill(acc_.begin(), acc_.end(), 0.0f);
  std::fill(m_.begin(), m_.end(), -std::numeric_limits<float>::infinity());
  std::fill(l_.begin(), l_.end(), 0.0f);
  for (int row = 0; row < groups * group; ++row) { // rows that fill up the group repeat the last row
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

void SparseRunner::add(TokenBlock &block, const Place &place, int rows) const {
  const auto at = static_cast<std::size_t>(block.tokens++);
  block.keyOffsets[at] = place.key;
  block.valueOffsets[at] = place.value;
  if (step_->kernel.readsSlots)
    block.slots[at] = place.slot;
  block.kvPos[at] = place.position;
  block.depth[at] = place.depth;
  block.rowLow[at] = 0;
  block.rowHigh[at] = rows;
}

bool SparseRunner::fill(TokenBlock &block, Walk &walk, int rows) const {
  const InputView &inputs = step_->inputs;
  block.tokens = 0;
  if (step_->selection.areSlots)
    for (; walk.token < walk.list.size() && block.tokens < step_->kernel.blockTokens; ++walk.token) {
      const int slot = walk.list[walk.token];
      add(block, {inputs.keyAtSlot(slot), inputs.valueAtSlot(slot), slot, 0, 0}, rows);
    }
  for (; walk.token < walk.list.size() && block.tokens < step_->kernel.blockTokens; ++walk.token) {
    const int position = walk.list[walk.token];
    while (walk.stretch < walk.path.size() &&
           position >= walk.path[walk.stretch].position + walk.path[walk.stretch].tokens)
      ++walk.stretch;
    if (walk.stretch == walk.path.size())
      break;
    const plan::PathStretch &stretch = walk.path[walk.stretch];
    if (position < stretch.position)
      continue; // hidden by the mask of the plan
    const int location = stretch.location + position - stretch.position;
    const long long slot = step_->kernel.readsSlots ? inputs.slotAt(location) : 0;
    add(block, {inputs.keyAt(location, 0), inputs.valueAt(location, 0), slot, position, stretch.depth}, rows);
  }
  if (block.tokens == 0)
    return false;
  TokenBlocks::pad(block, step_->kernel);
  return true;
}

void SparseRunner::addTokens(int query, int unit, std::span<const std::int32_t> list) {
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
  const std::byte *const keys = static_cast<const std::byte *>(step_->inputs.k) +
                                kvHead * step_->inputs.cache.k.headStride * variant.tensors.k.elementBytes();
  call.k = keys;
  call.v = static_cast<const std::byte *>(step_->inputs.v) +
           kvHead * step_->inputs.cache.v.headStride * variant.tensors.v.elementBytes();
  call.nextK = call.k;
  call.nextV = call.v;
  call.params = step_->inputs.params;
  call.rows = rows;
  call.kvHead = kvHead;
  call.masked = step_->kernel.hasMask;
  Walk walk{list, step_->paths.of(query)};
  if (!list.empty() && !step_->selection.areSlots) {
    const auto endsBefore = [&](const plan::PathStretch &stretch) {
      return stretch.position + stretch.tokens <= list.front();
    };
    walk.stretch = static_cast<std::size_t>(
        std::partition_point(walk.path.begin(), walk.path.end(), endsBefore) - walk.path.begin());
  }
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
    if (variant.tensors.hasScales())
      scaled_.read(variant, keys, *block, call);
    step_->kernel.attend(&call);
  }
}

void SparseRunner::attend(int query, int unit) {
  const int parts = step_->partsOf(query, unit);
  if (parts > 1) {
    const SparsePartials own{partialOut_.data(), partialLse_.data(), 0};
    for (int part = 0; part < parts; ++part)
      attendPart(query, unit, part, own);
    merge(query, unit, own);
    return;
  }
  addTokens(query, unit, step_->listOf(query, unit));
  abi::CpuFinishCall call = finishOf(query, unit);
  const RowOutput output = outputOf(query, unit);
  call.out = output.out;
  call.lse = output.lse;
  step_->kernel.finish(&call);
}

void SparseRunner::attendPart(int query, int unit, int part, const SparsePartials &partials) {
  const spec::Variant &variant = step_->variant;
  const auto list = step_->listOf(query, unit);
  const std::size_t first = static_cast<std::size_t>(part) * kPartTokens;
  addTokens(query, unit, list.subspan(first, std::min(kPartTokens, list.size() - first)));
  const std::size_t row =
      static_cast<std::size_t>(partials.firstSlot + part) * static_cast<std::size_t>(variant.queryHeads) +
      static_cast<std::size_t>(unit * step_->unitRows());
  abi::CpuFinishCall call = finishOf(query, unit);
  call.out = partials.out + row * static_cast<std::size_t>(variant.tensors.out.dim);
  call.lse = partials.lse + row;
  step_->kernel.finishPartial(&call);
}

void SparseRunner::merge(int query, int unit, const SparsePartials &partials) {
  const int firstHead = unit * step_->unitRows(), parts = step_->partsOf(query, unit);
  std::iota(slots_.begin(), slots_.begin() + parts, partials.firstSlot);
  const RowOutput output = outputOf(query, unit);
  const abi::CpuMergeCall call{.partialOut = partials.out + static_cast<std::ptrdiff_t>(firstHead) *
                                                                step_->variant.tensors.out.dim,
                               .partialLse = partials.lse + firstHead,
                               .slots = slots_.data(),
                               .out = output.out,
                               .lse = output.lse,
                               .slotCount = parts,
                               .rows = step_->unitRows(),
                               .params = step_->inputs.params,
                               .head = firstHead,
                               .qPos = step_->paths.queryPos(query),
                               .query = query,
                               .reserved0 = 0};
  step_->kernel.merge(&call);
}

abi::CpuFinishCall SparseRunner::finishOf(int query, int unit) const {
  abi::CpuFinishCall call{};
  call.acc = acc_.data();
  call.m = m_.data();
  call.l = l_.data();
  call.rows = step_->unitRows();
  call.head = unit * step_->unitRows();
  call.params = step_->inputs.params;
  call.qPos = step_->paths.queryPos(query);
  call.query = query;
  return call;
}

SparseRunner::RowOutput SparseRunner::outputOf(int query, int unit) const {
  const spec::Variant &variant = step_->variant;
  const int firstHead = unit * step_->unitRows();
  return {step_->outputs.out + query * rowStrideOf(step_->outputs.outStride, variant, variant.tensors.out) +
              static_cast<long long>(firstHead) * variant.tensors.out.dim,
          step_->outputs.lse
              ? step_->outputs.lse + static_cast<long long>(query) * variant.queryHeads + firstHead
              : nullptr};
}

SparseJob::SparseJob(const SparseStep &step, SparseScratch &scratch)
    : step_(step), scratch_(scratch), queries_(step.selection.queries), units_(step.unitsPerQuery()),
      parts_(mostParts(step)) {
  for (SparseRunner &runner : scratch.runners)
    runner.prepare(step, parts_);
  const auto rows = static_cast<std::size_t>(queries_) * static_cast<std::size_t>(parts_) *
                    static_cast<std::size_t>(step.variant.queryHeads);
  const auto dim = static_cast<std::size_t>(step.variant.tensors.out.dim);
  if (rows * (dim + 1) * sizeof(float) > kMostPartialBytes)
    parts_ = 1;
  if (parts_ > 1) {
    growTo(scratch.partialOut, rows * dim);
    growTo(scratch.partialLse, rows);
    growTo(scratch.partsLeft, static_cast<std::size_t>(queries_) * static_cast<std::size_t>(units_));
    for (int query = 0; query < queries_; ++query)
      for (int unit = 0; unit < units_; ++unit)
        scratch.partsLeft[static_cast<std::size_t>(query * units_ + unit)] = step.partsOf(query, unit);
  }
}

int SparseJob::helpers() const {
  constexpr double kLeastNs = 10'000, kBytesPerNs = 10; // for one core, roughly: the tokens are scattered
  const std::vector<std::int32_t> &counts = step_.selection.counts;
  const double perList = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0LL)) /
                         std::max<double>(1, static_cast<double>(counts.size()));
  const double bytes = perList * units_ * queries_ * step_.variant.tensors.cacheBytes();
  return static_cast<int>(std::min(bytes / kBytesPerNs / kLeastNs, std::max(pieces() - 1.0, 0.0)));
}

void SparseJob::attend(SparseRunner &runner, int piece) {
  const int query = piece % queries_, part = piece / queries_ % parts_, unit = piece / queries_ / parts_;
  const int own = step_.partsOf(query, unit);
  if (parts_ == 1 || own == 1) {
    if (part == 0)
      runner.attend(query, unit);
    return;
  }
  if (part >= own)
    return;
  const SparsePartials partials{scratch_.partialOut.data(), scratch_.partialLse.data(), query * parts_};
  runner.attendPart(query, unit, part, partials);
  std::atomic_ref<int> left(scratch_.partsLeft[static_cast<std::size_t>(query * units_ + unit)]);
  if (--left == 0)
    runner.merge(query, unit, partials);
}

void SparseJob::run(int slot) noexcept {
  SparseRunner &runner = scratch_.runners[static_cast<std::size_t>(slot)];
  for (int piece = next_++; piece < pieces(); piece = next_++)
    attend(runner, piece);
}

} // namespace deft::exec
