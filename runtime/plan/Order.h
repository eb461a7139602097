#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/Family.h"
#include "runtime/plan/Deal.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/RunWriter.h"
#include "runtime/plan/VariantFacts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace deft::plan {

/// Puts the tokens of items in the order in which kernels read them best: whole pages first, and the config's
/// order (config::Order). Kept between plans for its memory.
class RunOrder {
public:
  /// `plan` has its runs in path order. Items that read tokens in turn, but for those whose tokens are dealt,
  /// do so for the tree as it is: where a leaf of theirs has grown, it is time for a new plan.
  void apply(const config::Config &config, const VariantFacts &facts, Plan &plan,
             kernels::Families families = kernels::families());

private:
  /// The warp whose rows alone see a run, or -1; for all that nothing is dealt to, one number.
  static int ownerIn(const abi::Run &run, int ratio) { return std::min(ownerOf(run, ratio), kDealtWarps); }

  struct ItemForm {                 ///< of an item, as it is to become
    std::int64_t many = 0, few = 0; ///< under `mixed`: its tokens that many rows see, and few
    int dealtTiles = 0;             ///< 0: nothing is dealt
    bool isMisplaced = false;       ///< whole pages are not a tile's pieces in it
    std::size_t mostRuns = 0;       ///< as many runs become of the item's, at most
    bool hasManyAndFew() const { return many > 0 && few > 0; }
    bool isDealt() const { return dealtTiles > 0; }
    bool isMixed() const { return hasManyAndFew() && !isDealt(); } ///< its runs are cut into tiles
    bool isChanged() const { return hasManyAndFew() || isMisplaced; }
  };
  struct Split { ///< of an item's runs: which several warps see, and then which one alone does, by warps
    const int *common, *commonEnd;
    std::array<const int *, kDealtWarps + 2> owned; ///< where those of each begin, and the end
    int few;                                        ///< tokens of all that are owned
    std::array<int, kDealtWarps> tokens;            ///< and of each that may be dealt to
  };
  struct RunPart { ///< of an item's run
    int run;
    Part part;
  };

  void findGrowing(const Plan &plan);
  bool findForms(const config::Config &config, int ratio, const Plan &plan);
  void findShares(const config::Config &config, int ratio, const Plan &plan);
  std::size_t mostRuns(const abi::Item &item, const config::PhaseConfig &phase, const ItemForm &form) const;
  void rewrite(const config::Config &config, int ratio, Plan &plan);
  abi::Run *rewriteItem(std::size_t i, const abi::Item &item, int ratio, int tileTokens, abi::Run *to);
  abi::Run *forwardItem(const abi::Item &item, const abi::Run *from, RunWriter to) const;
  abi::Run *dealItem(const abi::Item &item, const Split &split, int tiles, const abi::Run *from,
                     RunWriter to);
  static abi::Run *mixItem(const abi::Run *from, const Split &split, const ItemForm &form, int tileTokens,
                           abi::Run *to);
  abi::Run *forwardAndMix(const abi::Item &item, const ItemForm &form, int ratio, int tileTokens,
                          const abi::Run *from, abi::Run *to);
  static Split splitRuns(std::span<const abi::Run> runs, int ratio, int *room);
  void moveTails(Plan &plan) const;

  const char *growthOf(const abi::Item &item) const {
    return piece_ > 0 ? doesGrow_.data() + item.runBegin : nullptr;
  }

  kernels::Families families_;
  int piece_ = 0;               ///< tokens of a page that are copied at once, at most; 0: each by itself
  std::vector<ItemForm> forms_; ///< of each item
  std::vector<char>
      doesGrow_; ///< of each run before, where pages come in pieces: whether a leaf may grow there
  std::vector<RunPart> dealt_;          ///< of an item's, warp by warp
  UnfilledVector<abi::Run> former_;     ///< the plan's runs before they are written anew
  std::vector<const abi::Run *> endOf_; ///< of each of these: the one that ends where it did

  // Under `mixed`:
  std::vector<Split> splits_; ///< of each item
  std::vector<int> split_;    ///< where they are, two numbers of each run before

  // Of an item whose pages come forward before it is mixed:
  UnfilledVector<abi::Run> forwarded_;
  std::vector<int> splitOfForwarded_;
  std::vector<const abi::Run *> endOfForwarded_;
};

} // namespace deft::plan
