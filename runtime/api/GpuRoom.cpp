#include "runtime/api/Checks.h"
#include "runtime/api/Gpu.h"
#include "runtime/api/Plan.h"
#include "runtime/api/Sized.h"
#include "runtime/exec/cuda/PlanSelecting.h"
#include "runtime/plan/Items.h"
#include "runtime/plan/PagePieces.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace deft::api {

namespace {

/// Nodes of a path that there is room for, on average.
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

Needs needsOf(const exec::CudaKernels &kernels, const GpuPlanOptions &options) {
  const auto shape = kernels::KernelShape::of(kernels.variant());
  const config::Config config = withOptions(kernels.config(), options.plan);
  const bool hasOwnChunks = options.isInvariant() && config.chunkTokens > 0;
  const int piece = kernels.readByTensorMap() ? plan::pieceOf(kernels.variant().cache.pageSize) : 0;
  return {kernels.blocksAtOnce(),
          shape.unitsOfItem(),
          std::max(config::mostRows(config) / shape.rowsOfQuery(), 1),
          config.chunkTokens,
          static_cast<std::int64_t>(plan::mostParts(piece)),
          config.order == config::Order::Mixed,
          hasOwnChunks ? divideUp(options.own.longest_path, config.chunkTokens) : 0};
}

/// The bounds are those of partition `union` with the chunk that fills the machine, which any tree may get
/// (kPlanOfLeastRoom): no more tiles than queries, and what chooseChunkTokens cuts them into beside; others
/// have the nodes' tiles, too. An invariant plan's chunks are cut once more by how many queries a tile has.
deft_gpu_room neededRoom(const Needs &needs, std::int64_t requests, std::int64_t queries,
                         std::int64_t tokens) {
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
  deft_gpu_room room{};
  room.queries = count(queries);
  room.items = count(items);
  room.runs = count(std::max(inPathOrder, inPages + mixed));
  room.partials = count(partials);
  return room;
}

struct RoomSize {
  deft_gpu_room room = {};
  deft_gpu_room_size bytes = {};
};

Result<RoomSize> roomFor(const deft_gpu_attention &attention, int requests, int queries, std::int64_t tokens,
                         const GpuPlanOptions &options) {
  constexpr int kMost = tree::KvTree::kMaxNodes / 2;
  for (const auto &[name, value, most] :
       {std::tuple<const char *, std::int64_t, std::int64_t>("requests", requests, kMost),
        {"queries", queries, tree::KvTree::kMaxQueries},
        {"tokens", tokens, std::int64_t{1} << 40},
        {"deft_gpu_plan_options::longest_path", options.own.longest_path, std::numeric_limits<int>::max()}})
    if (auto checked = checkRange(name, value, 0, most); !checked)
      return checked.error();
  const exec::CudaKernels &kernels = *attention.kernels;
  const int budget = options.own.budget, longestPath = options.own.longest_path;
  RoomSize size;
  size.room = neededRoom(needsOf(kernels, options), requests, queries, tokens);
  if (budget > 0) {
    const std::int64_t longest = longestPath > 0 ? std::min<std::int64_t>(longestPath, tokens) : tokens;
    size.room.positions = static_cast<int>(std::min(longest, kMostPlanned));
    size.room.stretches = static_cast<int>(std::min(queries * kPathNodes, kMostPlanned));
  }
  exec::PlanRoom room = roomOf(size.room, kernels.phases());
  room.growsOnDevice = options.own.follows_lengths != 0;
  if (budget > 0) {
    const auto selecting =
        exec::PlanSelecting::create(kernels, budget, options.isInvariant(), options.listOverlap());
    if (!selecting)
      return selecting.error();
    selecting->completeRoom(room);
  }
  const auto bytes = exec::RoomBytes::of(room, kernels.variant());
  size.bytes.device_bytes = bytes.onDevice();
  size.bytes.host_bytes = 2 * bytes.plan;
  return size;
}

} // namespace

exec::PlanRoom roomOf(const deft_gpu_room &room, std::size_t phases) {
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

} // namespace deft::api

using namespace deft::api;

deft_status deft_gpu_room_for(const deft_gpu_attention *attention, int32_t requests, int32_t queries,
                              int64_t tokens, const deft_gpu_plan_options *options, deft_gpu_room *room,
                              deft_gpu_room_size *room_size) {
  return call({{"attention", attention}, {"room", room}}, [&]() -> Result<void> {
    const auto known = gpuPlanOptionsOf(options, attention->variant());
    if (!known)
      return known.error();
    const auto needed = roomFor(*attention, requests, queries, tokens, *known);
    if (!needed)
      return needed.error();
    if (room_size)
      if (auto written = writeSized("deft_gpu_room_size", needed->bytes, room_size); !written)
        return written;
    return writeSized("deft_gpu_room", needed->room, room);
  });
}
