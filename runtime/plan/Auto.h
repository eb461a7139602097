#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/TreeView.h"

#include <array>
#include <cstdint>

/// Partition `auto`: the cheapest by the cost model.
namespace deft::plan {

/// How one plan is cut.
struct Choice {
  spec::Partition partition = spec::Partition::Union;
  int chunkTokens = 0; ///< as Config::chunkTokens

  bool operator==(const Choice &) const = default;
};

/// What is tried, in this order; of equal ones the first is taken. All of them with the config's chunk; where
/// that is open, the best one then with these chunks.
inline constexpr std::array<spec::Partition, 7> kAutoPartitions{
    spec::Partition::Union,   spec::Partition::Greedy, spec::Partition::NodeChunk, spec::Partition::Flatten,
    spec::Partition::Cascade, spec::Partition::Query,  spec::Partition::Node};
inline constexpr std::array<int, 8> kAutoChunks{128, 192, 256, 384, 512, 768, 1024, 2048};

/// Names the class of a plan's arguments: equal ones for trees that differ little in size, sharing, width and
/// depth, under the same config on the same machine. Hashed, for comparison only.
std::uint64_t classOf(const TreeView &view, const VariantFacts &facts, const config::Config &config,
                      int blocks);

/// What the size of any plan follows from.
struct ViewCounts {
  std::int64_t pathNodes = 0;  ///< nodes with tokens on the paths of all queries
  std::int64_t pathTokens = 0; ///< tokens on them
  std::int64_t readTokens = 0; ///< each once
  std::int64_t nodeTiles = 0;  ///< row tiles where every node is read by itself
  std::int64_t queries = 0;
};
ViewCounts countsOf(const TreeView &view, int queriesPerTile);

/// What is certain of all plans, and of those that read every node by itself. By a model's prices, one KV
/// head.
struct LeastWork {
  ViewCounts counts;
  std::int64_t tileTokens = 0; ///< those that more queries read than a tile holds as often as tiles read them
  double coverUs = 0;          ///< of these
  double nodeUs = 0;           ///< of items of a node each
  std::int64_t nodePartials = 0; ///< beside these
};
LeastWork leastWorkOf(const TreeView &view, const CostModel &model);

/// What any plan of a partition takes at least.
struct LowerBound {
  double us = 0; ///< as PlanCost::microseconds
  std::int64_t runs = 0;
  bool isMerged = false; ///< for certain
  /// As rankOf().
  double rank(const CostModel &model) const { return us * (isMerged ? 1 + model.mergedShare() : 1); }
};
LowerBound lowerBoundOf(spec::Partition partition, const LeastWork &least, const CostModel &model);

/// A choice is looked for that nothing beats by more than so much; prices err by ten times that.
inline constexpr double kWorthTrying = 0.99;

/// What `auto` takes for the plans of a class.
struct ChoiceOfClass {
  Choice choice;
  int unionRows = 0; ///< of the largest tile of partition `union`; 0: to be found for each tree
};

/// The choices for the classes seen last.
class AutoMemory {
public:
  ChoiceOfClass *find(std::uint64_t key); ///< null: none is known
  ChoiceOfClass &remember(std::uint64_t key, const Choice &choice);

private:
  struct Entry {
    std::uint64_t key = 0;
    ChoiceOfClass choice;
  };
  std::array<Entry, 64> entries_;
  std::size_t count_ = 0; ///< ever remembered: the oldest is overwritten
};

} // namespace deft::plan
