#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/TreeView.h"

#include <array>
#include <cstdint>

/// Partition `auto`: the partition and chunk that the cost model finds cheapest.
namespace deft::plan {

/// How a plan groups tokens and cuts them.
struct Choice {
  spec::Partition partition = spec::Partition::Union;
  int chunkTokens = 0; ///< as Config::chunkTokens
  int waves = 0;       ///< items are cut by price (PriceCut), so many for each block; 0: by tokens

  bool operator==(const Choice &) const = default;
};

/// The partitions that `auto` tries, in this order, with the config's chunk. It keeps the first of equally
/// cheap ones. If the config leaves the chunk open, it then tries these with the best partition.
inline constexpr std::array<spec::Partition, 7> kAutoPartitions{
    spec::Partition::Union,   spec::Partition::Greedy, spec::Partition::NodeChunk, spec::Partition::Flatten,
    spec::Partition::Cascade, spec::Partition::Query,  spec::Partition::Node};
inline constexpr std::array<int, 8> kAutoChunks{128, 192, 256, 384, 512, 768, 1024, 2048};

/// If the config leaves the chunk open and blocks last (hasLastingBlocks), `auto` also tries to cut by price,
/// into items that fill so many rounds of all blocks.
inline constexpr std::array<int, 4> kAutoWaves{1, 2, 3, 4};

/// A hash that names the class of a plan's arguments. Trees of similar size, sharing, width and depth have
/// the same hash under one config on one machine. Only compare it: it has no other meaning.
std::uint64_t classOf(const TreeView &view, const VariantFacts &facts, const config::Config &config,
                      int blocks);

/// The counts that determine the size of any plan.
struct ViewCounts {
  std::int64_t pathNodes = 0;  ///< summed over queries: nodes with tokens on the query's path
  std::int64_t pathTokens = 0; ///< summed over queries: tokens of the path
  std::int64_t readTokens = 0; ///< tokens that some query sees, each counted once
  std::int64_t nodeTiles = 0;  ///< row tiles if every node is read separately
  std::int64_t queries = 0;
};
ViewCounts countsOf(const TreeView &view, int queriesPerTile);

/// Lower bounds of the work: for all plans, and for plans that read every node separately. Times are for one
/// KV head, by the prices of a cost model.
struct LeastWork {
  ViewCounts counts;
  std::int64_t tileTokens = 0;   ///< each token counted once per row tile that must read it
  double coverUs = 0;            ///< time to read these tokens
  double nodeUs = 0;             ///< the same if each item reads one node
  std::int64_t nodePartials = 0; ///< partials if each item reads one node
  double leafUs = 0;             ///< time of the items of leaves, if each has items of its own
  double aboveUs = 0;            ///< of all blocks: their queries read what is above, or have partials
  std::int64_t queryItems = 0;   ///< queries that see something
  std::int64_t flatItems = 0;    ///< items of `flatten`
  std::int64_t flatPartials = 0; ///< and their partials
};
/// `flatChunk` is the most tokens of an item of `flatten`.
LeastWork leastWorkOf(const TreeView &view, const CostModel &model, int flatChunk);

/// A lower bound of the cost of any plan of one partition.
struct LowerBound {
  double us = 0; ///< as PlanCost::microseconds
  std::int64_t runs = 0;
  bool isMerged = false; ///< true only if every such plan needs a merge
  /// As rankOf(), for this bound.
  double rank(const CostModel &model) const { return us * (isMerged ? 1 + model.mergedShare() : 1); }
};
LowerBound lowerBoundOf(spec::Partition partition, const LeastWork &least, const CostModel &model);

/// `auto` skips a choice that could win by less than this factor; prices err by ten times as much.
inline constexpr double kWorthTrying = 0.99;

/// The choice of `auto` for all trees of one class.
struct ChoiceOfClass {
  Choice choice;
  int unionRows = 0; ///< rows of the largest `union` tile; 0: each tree searches for it
};

/// Remembers the choices for the last 64 classes.
class AutoMemory {
public:
  ChoiceOfClass *find(std::uint64_t key); ///< null: the class is not known
  ChoiceOfClass &remember(std::uint64_t key, const Choice &choice);

private:
  struct Entry {
    std::uint64_t key = 0;
    ChoiceOfClass choice;
  };
  std::array<Entry, 64> entries_;
  std::size_t count_ = 0; ///< classes remembered so far; the newest replaces the oldest
};

} // namespace deft::plan
