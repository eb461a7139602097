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

/// Orders the tokens of items for the kernels: whole pages first, and the order that the config asks for
/// (config::Order). Keep the object between plans to reuse its memory.
class RunOrder {
public:
  /// The runs of `plan` must be in path order. Items that alternate tokens without dealing fit only the tree
  /// as it is now: if one of their leaves grows, the tree needs a new plan.
  void apply(const config::Config &config, const VariantFacts &facts, Plan &plan,
             kernels::Families families = kernels::families());

private:
  /// The one warp whose rows see a run, or -1. Warps that nothing is dealt to share one number.
  static int ownerIn(const abi::Run &run, int ratio) { return std::min(ownerOf(run, ratio), kDealtWarps); }

  struct ItemForm {                 ///< how an item will be rewritten
    std::int64_t many = 0, few = 0; ///< under `mixed`: its tokens with many readers, and with few
    int dealtTiles = 0;             ///< 0: nothing is dealt
    bool isMisplaced = false;       ///< its whole pages are not pieces of a tile
    std::size_t mostRuns = 0;       ///< the most runs that it may have afterwards
    bool hasManyAndFew() const { return many > 0 && few > 0; }
    bool isDealt() const { return dealtTiles > 0; }
    bool isMixed() const { return hasManyAndFew() && !isDealt(); } ///< its runs are cut into turns
    bool isChanged() const { return hasManyAndFew() || isMisplaced; }
  };
  struct Split { ///< divides an item's runs: those of several warps, then those of one warp each, by warp
    const int *common, *commonEnd;
    std::array<const int *, kDealtWarps + 2> owned; ///< where each warp's runs begin, and the end
    int few;                                        ///< all tokens that only one warp sees
    std::array<int, kDealtWarps> tokens;            ///< the same for each warp that may be dealt tokens
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
  int piece_ = 0;               ///< the most tokens of a page that are copied at once; 0: single tokens
  std::vector<ItemForm> forms_; ///< for each item
  std::vector<char>
      doesGrow_; ///< for each old run, if pages are copied in pieces: whether a leaf may grow there
  std::vector<RunPart> dealt_;          ///< of one item, warp by warp
  UnfilledVector<abi::Run> former_;     ///< the plan's runs before they are rewritten
  std::vector<const abi::Run *> endOf_; ///< for each of these: the new run that ends where it ended

  // Under `mixed`:
  std::vector<Split> splits_; ///< for each item
  std::vector<int> split_;    ///< the runs that splits_ points to: two numbers for each old run

  // For an item whose whole pages come first and whose runs then alternate:
  UnfilledVector<abi::Run> forwarded_;
  std::vector<int> splitOfForwarded_;
  std::vector<const abi::Run *> endOfForwarded_;
};

} // namespace deft::plan
