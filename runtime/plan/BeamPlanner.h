#pragma once

#include "runtime/plan/Planner.h"
#include "runtime/tree/BeamTree.h"

namespace deft::plan {

/// Plans of beams, which are made anew in each step: as partition `union`, in tiles of as many beams as one
/// holds, written from the stretches at once. That is for beams that keep all blocks at work without a cut;
/// fewer of them, processors, a mask that hides tokens, and configs that ask for another partition take the
/// way of any tree.
///
/// Holds the memory that planning needs. For one thread at a time.
class BeamPlanner {
public:
  explicit BeamPlanner(const PlanOptions &options = {}) : options_(options), planner_(options) {}

  /// As Planner::make. The plan's generation is that of the beams.
  support::Result<void> make(const tree::BeamTree &beams, const VariantFacts &facts,
                             const config::Config &config, int blocks, Plan &plan);

  /// As Planner::lastChoice().
  const Choice &lastChoice() const { return wasDirect_ ? kDirect : planner_.lastChoice(); }
  /// Whether the last plan was written at once.
  bool wasDirect() const { return wasDirect_; }

private:
  static constexpr Choice kDirect{spec::Partition::Union, 0};

  struct Tile {
    int begin = 0, end = 0; ///< seats
    int tokens = 0, runs = 0;
    int item = 0;    ///< in the plan's order
    int nextRun = 0; ///< where its next run goes
  };

  bool cutTiles(const tree::BeamTree &beams, const VariantFacts &facts, const config::Config &config,
                int blocks);
  bool countRuns(const tree::BeamTree &beams);
  void placeItems(const config::Config &config, const VariantFacts &facts, Plan &plan);
  void writeRuns(const tree::BeamTree &beams, abi::Run *runs);

  PlanOptions options_;
  Planner planner_;
  RunOrder order_;
  std::vector<Tile> tiles_;
  std::vector<int> tileOf_; ///< of each seat
  std::vector<int> sorted_;
  std::size_t runs_ = 0;
  std::int64_t readTokens_ = 0;
  int tableTokens_ = 0;
  int piece_ = 0;          ///< as pieceOf(), where that counts
  bool areInPlace_ = true; ///< whole pages of histories are pieces of a tile, too
  bool wasDirect_ = false;
};

} // namespace deft::plan
