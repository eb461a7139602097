#pragma once

#include "compiler/config/Config.h"
#include "runtime/plan/Deal.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/RunWriter.h"
#include "runtime/plan/VariantFacts.h"

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
  void apply(const config::Config &config, const VariantFacts &facts, Plan &plan);

private:
  struct Shares { ///< of an item's tokens, under `mixed`: those that many rows see, and few
    std::int64_t many = 0, few = 0;
    int dealtTiles = 0; ///< 0: nothing is dealt
    bool areBoth() const { return many > 0 && few > 0; }
    bool areDealt() const { return dealtTiles > 0; }
    bool areMixed() const { return areBoth() && !areDealt(); } ///< its runs are cut into tiles
  };
  struct RunPart { ///< of an item's run
    int run;
    Part part;
  };

  bool findShares(const config::Config &config, int ratio, const Plan &plan);
  void findOwners(int ratio, const Plan &plan);
  void findGrowing(const Plan &plan);
  bool bringPagesForward(const config::Config &config, Plan &plan);
  std::size_t mostParts() const { return piece_ == 0 ? 1 : piece_ > kGroupTokens ? 5 : 3; } ///< of a run
  void listParts(const abi::Item &item, std::span<const int> which, const abi::Run *runs);
  void mix(const config::Config &config, Plan &plan);
  abi::Run *mixItem(const abi::Item &item, const Shares &shares, int tileTokens, const abi::Run *from,
                    abi::Run *to);
  abi::Run *dealItem(const abi::Item &item, int tiles, const abi::Run *from, RunWriter to);
  template <std::size_t kBuckets, class BucketOf>
  std::array<int, kBuckets + 1> sortRuns(const abi::Item &item, BucketOf bucketOf);
  template <class Most, class Write>
  void rewriteRuns(const config::Config &config, Plan &plan, Most most, Write write);
  void moveTails(Plan &plan);

  int piece_ = 0;                 ///< tokens of a page that are copied at once, at most; 0: each by itself
  std::vector<Shares> shares_;    ///< of each item
  std::vector<int> owners_;       ///< of each run before: the warp whose rows alone see it, or -1
  std::vector<char> isMisplaced_; ///< of each item: whether whole pages are not a tile's pieces in it
  std::vector<char> doesGrow_;    ///< of each run before: whether it ends where a leaf may grow
  std::vector<int> sorted_;       ///< an item's runs by whose they are, at least as many as are wanted
  std::vector<RunPart> parts_;    ///< of an item's runs, in their order
  std::vector<RunPart> groups_;   ///< those to come behind whole pages, and
  std::vector<RunPart> rest_;     ///< behind these
  std::vector<abi::Run> former_;  ///< the plan's runs before they are written anew
  std::vector<int> endOf_;        ///< of each of these: the one that ends where it did
};

} // namespace deft::plan
