#pragma once

#include "compiler/support/Result.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/KvTree.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// A plan in one flat buffer: what is copied to a device in one go, or kept in a file. Native byte order.
namespace deft::plan {

/// The parts of the buffer. Kernels read the parts before `Phases`, the host the rest.
enum class PlanPart {
  Items,
  Runs,
  CallerIndex,
  QueryPos,
  MergeQuery,
  MergeBegin,
  MergeSlot,
  Phases,
  Leaves,
  Tails
};
constexpr std::size_t kPlanParts = 10;
constexpr std::size_t kPlanAlignment = 16; ///< of each part within the buffer

struct PlanHeader {
  static constexpr std::uint64_t kMagic = 0x6e616c7074666564; ///< "deftplan"
  static constexpr std::uint32_t kVersion = 1;

  struct Part {
    std::uint64_t offset; ///< in bytes, from the buffer's start
    std::uint64_t count;  ///< elements
  };

  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t headerBytes;
  std::uint64_t bytes;       ///< of the whole buffer
  std::uint64_t deviceBytes; ///< of the header and the parts that kernels read
  std::uint64_t generation;  ///< of the tree: a buffer of another one is stale
  std::uint64_t structureGeneration;
  std::int64_t readTokens;
  std::int32_t partialSlots;
  std::int32_t grownTokens;
  std::int32_t strictChunk;
  std::int32_t partition; ///< spec::Partition
  std::int32_t chunkTokens;
  std::int32_t reserved;
  std::array<Part, kPlanParts> parts;

  const Part &part(PlanPart which) const { return parts[static_cast<std::size_t>(which)]; }
};
static_assert(sizeof(PlanHeader) % kPlanAlignment == 0);

/// The most that a buffer has room for. Parts then lie where they lie in every plan of these capacities, so
/// that a captured graph finds the next step's plan in the same places. 0: as much as the plan has.
struct PlanCapacity {
  int queries = 0;
  int items = 0;
  int runs = 0;
  int mergeSlots = 0;
  int partialSlots = 0; ///< not in the buffer, but in the scratch memory beside it
};

/// Replaces `buffer`, whose memory is kept. Fails where the plan exceeds a capacity, and says which.
support::Result<void> writePlan(const Plan &plan, std::vector<std::byte> &buffer,
                                const PlanCapacity &capacity = {});

/// The header of a buffer that was not cut short and is of this version.
support::Result<PlanHeader> readPlanHeader(std::span<const std::byte> buffer);

/// Reads a plan back. What it returns is safe to execute: no index in it leads out of the plan. Whether it
/// covers a tree is what verify() says.
support::Result<Plan> readPlan(std::span<const std::byte> buffer);

/// Whether the tree has changed since the plan was made or advanced.
inline bool isStale(const PlanHeader &header, const tree::KvTree &tree) {
  return header.generation != tree.generation();
}

} // namespace deft::plan
