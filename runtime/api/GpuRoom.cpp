#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/GpuImpl.h"
#include "runtime/api/PlanImpl.h"
#include "runtime/api/SelectionImpl.h"
#include "runtime/exec/cuda/PlanSelecting.h"
#include "runtime/plan/Items.h"
#include "runtime/plan/PagePieces.h"

#include <algorithm>
#include <limits>

namespace deft {

namespace {

/// Nodes of a path that there is room for, in the mean.
constexpr std::int64_t kPathNodes = 32;
/// Partials of a query that stem from nodes, and not from chunks.
constexpr std::int64_t kNodePartials = 4;

constexpr std::int64_t kMostPlanned = 1 << 28; ///< of anything: more than a device's memory

std::int64_t divideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What makes room, of an attention and the options.
struct Needs {
  std::int64_t blocks, kvHeads, queriesOfTile;
  std::int64_t chunkTokens; ///< 0: as fills the machine
  std::int64_t partsOfRun;  ///< that become of a run where whole pages are read first
  bool isMixed;
  /// Chunks of a query's path, where it is cut by nothing but its own length; 0: not, or it is not known.
  std::int64_t chunksOfPath;
};

Needs needsOf(const GpuAttention &attention, const GpuPlanOptions &options) {
  const exec::CudaKernels &kernels = *attention.impl().kernels;
  const spec::Variant &variant = kernels.variant();
  const config::Config config = withOptions(kernels.config(), options.plan);
  const bool hasOwnChunks = options.plan.invariant && config.chunkTokens > 0;
  const int piece = kernels.readByTensorMap() ? plan::pieceOf(attention.attention().pageSize()) : 0;
  return {kernels.blocksAtOnce(),
          variant.kvHeads,
          std::max(config::mostRows(config) / variant.ratio(), 1),
          config.chunkTokens,
          static_cast<std::int64_t>(plan::mostParts(piece)),
          config.order == config::Order::Mixed,
          hasOwnChunks ? divideUp(options.longestPath, config.chunkTokens) : 0};
}

/// The bounds are those of partition `union` with the chunk that fills the machine, which any tree may get
/// (kPlanOfLeastRoom): no more tiles than queries, and what chooseChunkTokens cuts them into beside; others
/// have the nodes' tiles, too. An invariant plan's chunks are cut once more by how many queries a tile has.
GpuRoom roomOf(const Needs &needs, std::int64_t requests, std::int64_t queries, std::int64_t tokens) {
  const std::int64_t nodes = 2 * requests + 1,
                     cuts = divideUp(std::int64_t{plan::kMostChunkParts} * needs.blocks, needs.kvHeads) +
                            plan::kMostChunkParts,
                     chunks = needs.chunkTokens > 0 ? divideUp(2 * tokens, needs.chunkTokens) : 0;
  const std::int64_t ownPartials = queries * needs.chunksOfPath;
  const std::int64_t items = queries + nodes + cuts + chunks + ownPartials / needs.queriesOfTile;
  const std::int64_t partials =
      kNodePartials * queries + std::max(std::min(needs.queriesOfTile, queries) * cuts, ownPartials);
  // A request's new queries cut its last tokens in as many segments, of which each tile sees those before it.
  const std::int64_t more = std::max<std::int64_t>(queries - requests, 0);
  const std::int64_t stairs = more * (more / needs.queriesOfTile + 2) / 2;
  const std::int64_t inPathOrder = items + nodes + queries * kPathNodes + stairs;
  const std::int64_t inPages = (items + nodes + queries) * needs.partsOfRun + stairs,
                     mixed = needs.isMixed ? divideUp(tokens, 16) : 0;
  const auto count = [](std::int64_t value) { return static_cast<int>(std::min(value, kMostPlanned)); };
  return {.queries = count(queries),
          .items = count(items),
          .runs = count(std::max(inPathOrder, inPages + mixed)),
          .partials = count(partials)};
}

} // namespace

exec::PlanRoom toInternal(const GpuRoom &room, std::size_t phases) {
  exec::PlanRoom own;
  own.queries = own.mergedQueries = room.queries;
  own.runs = room.runs;
  own.mergeSlots = own.partialSlots = room.partials;
  own.items.assign(phases, room.items);
  own.positions = room.positions;
  own.stretches = room.stretches;
  own.unitedQueries = room.queries; // as many as may be; kernels that read no unions want none
  return own;
}

Result<GpuRoomSize> roomFor(const GpuAttention &attention, int requests, int queries, std::int64_t tokens,
                            const GpuPlanOptions &options) {
  constexpr int kMost = tree::KvTree::kMaxNodes / 2;
  if (auto checked = api::checkRange("requests", requests, 0, kMost); !checked)
    return checked.error();
  if (auto checked = api::checkRange("queries", queries, 0, tree::KvTree::kMaxQueries); !checked)
    return checked.error();
  if (auto checked = api::checkRange("tokens", tokens, 0, std::int64_t{1} << 40); !checked)
    return checked.error();
  if (auto checked = api::checkRange("GpuPlanOptions::longestPath", options.longestPath, 0,
                                     std::numeric_limits<int>::max());
      !checked)
    return checked.error();
  if (options.budget != 0)
    if (auto checked = exec::checkBudget(attention.attention().impl().variant(), options.budget); !checked)
      return api::toPublic(checked.error());
  return api::guarded([&]() -> Result<GpuRoomSize> {
    GpuRoomSize size;
    const exec::CudaKernels &kernels = *attention.impl().kernels;
    size.room = roomOf(needsOf(attention, options), requests, queries, tokens);
    if (options.budget > 0) {
      const std::int64_t longest =
          options.longestPath > 0 ? std::min<std::int64_t>(options.longestPath, tokens) : tokens;
      size.room.positions = static_cast<int>(std::min(longest, kMostPlanned));
      size.room.stretches = static_cast<int>(std::min(queries * kPathNodes, kMostPlanned));
    }
    exec::PlanRoom room = toInternal(size.room, kernels.phases());
    room.growsOnDevice = options.followsLengths;
    if (options.budget > 0) {
      const auto selecting = exec::PlanSelecting::create(kernels, options.budget, options.plan.invariant);
      if (!selecting)
        return api::toPublic(selecting.error());
      selecting->completeRoom(room);
    }
    const auto bytes = exec::RoomBytes::of(room, kernels.variant());
    size.deviceBytes = bytes.onDevice();
    size.hostBytes = 2 * bytes.plan;
    return size;
  });
}

} // namespace deft
