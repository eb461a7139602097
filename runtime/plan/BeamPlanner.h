#pragma once

#include "runtime/plan/Planner.h"
#include "runtime/tree/BeamTree.h"

namespace deft::plan {

/// Plans beams, which change in every step. It writes partition `union` directly from the stretches, in the
/// largest tiles that a phase holds. That needs enough beams to keep all blocks busy without chunks. With
/// fewer beams, on processors, with a mask that hides tokens, or for another partition it makes a tree and
/// uses Planner.
///
/// Keeps the memory that planning needs. For one thread at a time.
class BeamPlanner {
public:
  explicit BeamPlanner(const PlanOptions &options = {}) : options_(options), planner_(options) {}

  /// As Planner::make. The plan takes the generation of the beams.
  support::Result<void> make(const tree::BeamTree &beams, const VariantFacts &facts,
                             const config::Config &config, int blocks, Plan &plan);

  /// As Planner::lastChoice().
  const Choice &lastChoice() const { return wasDirect_ ? kDirect : planner_.lastChoice(); }
  /// Whether the last plan was written directly from the stretches.
  bool wasDirect() const { return wasDirect_; }

private:
  static constexpr Choice kDirect{spec::Partition::Union, 0};

  struct Tile {
    int begin = 0, end = 0; ///< seats
    int tokens = 0, runs = 0;
    int item = 0;    ///< its number in the plan's order
    int nextRun = 0; ///< the place for its next run
  };

  bool cutTiles(const tree::BeamTree &beams, const VariantFacts &facts, const config::Config &config,
                int blocks);
  template <typename Visit> void forEachRun(const tree::BeamTree &beams, Visit visit);
  bool countRuns(const tree::BeamTree &beams);
  void placeItems(const config::Config &config, const VariantFacts &facts, Plan &plan);
  void writeRuns(const tree::BeamTree &beams, abi::Run *runs);

  PlanOptions options_;
  Planner planner_;
  RunOrder order_;
  std::vector<Tile> tiles_;
  std::vector<int> tileOf_; ///< the tile of each seat
  std::vector<int> sorted_;
  std::size_t runs_ = 0;
  std::int64_t readTokens_ = 0;
  int tableTokens_ = 0;
  int piece_ = 0;          ///< as pieceOf(); 0 if pages need no order
  bool areInPlace_ = true; ///< whole pages of histories are also whole pieces of a tile
  bool wasDirect_ = false;
};

} // namespace deft::plan
