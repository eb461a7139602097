#pragma once

#include "compiler/config/SparseCut.h"
#include "runtime/exec/cuda/Unions.h"

#include <cstdint>
#include <vector>

/// Tables beside a plan for the kernels of a variant that selects (specs/LANGUAGE.md, rules K).
namespace deft::exec {

/// How lists are cut into items for the kernel that reads them. The cut ignores the contents of lists, so a
/// captured launch serves every step. It depends on the number of queries unless the plan is invariant.
struct SparseSplit {
  int budget = 0;       ///< tokens of a list; 0: nothing is selected
  int tileTokens = 1;   ///< the tokens of an item are a multiple
  int blocksOfItem = 1; ///< of one item
  int blocksAtOnce = 1; ///< that the device runs
  bool isInvariant = false;
  UnionShape unions = {}; ///< queries whose paths begin alike; none in an invariant plan
  /// The measured cuts for this kernel and budget, sorted by queries.
  std::vector<config::SparseCut> tuned = {};

  struct Cut {
    int itemTokens, parts; ///< tokens of an item; items of a query
    bool isTuned = false;  ///< measured, not from the costs

    bool operator==(const Cut &) const = default;
  };
  /// The cheapest cut by costs, or the one measured for about this number of queries.
  Cut cut(int queries) const;
  /// All cuts that cut() may choose, by rising cost: at most one wave of blocks, or a few parts for each
  /// query. So a room for these holds every measured cut.
  std::vector<Cut> cuts(int queries) const;
  /// The most items for up to `queries` queries.
  int mostItems(int queries) const;

private:
  std::int64_t blocksOf(int queries) const;
  int mostParts(int queries) const;
  Cut cutInto(int parts) const;
  double cost(const Cut &cut, int queries) const;
  Cut cheapest(int queries) const;
};

/// Positions in a row of the table of worth, rounded up.
constexpr int worthStride(int positions) { return (positions + 3) / 4 * 4; }

struct SelectingTables {
  std::vector<abi::PathStretch> stretches; ///< as in abi::Selected
  std::vector<int> stretchBegin;           ///< for each query by caller's index, and the end of the last
  int positions = 0;                       ///< of the longest path
  std::vector<abi::Union> unions;          ///< in plan order of their queries
  std::vector<abi::Item> unitedItems;      ///< for these
  std::vector<abi::Item> items;            ///< for the other queries, in the same order
  int partials = 0;                        ///< for both kinds of items
  SparseSplit::Cut cut = {};               ///< of `items`, even if there are none
  std::vector<int> mergeQuery, mergeBegin{0}, mergeSlot; ///< as in abi::MergeArgs

  int unitedQueries() const { return unions.empty() ? 0 : unions.back().before + unions.back().queryCount; }
};

/// The tables of a plan; at most `mostUnited` queries may be in unions. Calls may share the memory `paths`.
SelectingTables selectingTables(const plan::Plan &plan, const SparseSplit &split, int mostUnited,
                                plan::Paths &paths);

} // namespace deft::exec
