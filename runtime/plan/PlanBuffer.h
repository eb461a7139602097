#pragma once

#include "compiler/support/Result.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/KvTree.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// A plan in one flat buffer: all that a plan is, to be kept in a file or handed to another process, which
/// may trust nothing in it. Native byte order.
///
/// What a device gets is written by exec::writeSections instead. There places follow from the room alone and
/// runs stand last, so that as much is copied as there is; each phase's items and the merge map are ended by
/// marks, because a captured graph knows no counts; and what only the host reads is left out. Laid out that
/// way, this buffer would lack what makes a plan whole; laid out this way, an upload would copy leaves and
/// tails, or a graph would have to look into a header before it finds its first item.
namespace deft::plan {

/// The parts of the buffer.
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
  static constexpr std::uint32_t kVersion = 2;

  struct Part {
    std::uint64_t offset; ///< in bytes, from the buffer's start
    std::uint64_t count;  ///< elements
  };

  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t headerBytes;
  std::uint64_t bytes;      ///< of the whole buffer
  std::uint64_t generation; ///< of the tree: a buffer of another one is stale
  std::uint64_t structureGeneration;
  std::int64_t readTokens;
  std::int32_t partialSlots;
  std::int32_t grownTokens;
  std::int32_t strictChunk;
  std::int32_t partition; ///< spec::Partition
  std::int32_t chunkTokens;
  std::int32_t reserved[3];
  std::array<Part, kPlanParts> parts;

  const Part &part(PlanPart which) const { return parts[static_cast<std::size_t>(which)]; }
};
static_assert(sizeof(PlanHeader) % kPlanAlignment == 0);

/// Replaces `buffer`, whose memory is kept.
void writePlan(const Plan &plan, std::vector<std::byte> &buffer);

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
