#pragma once

#include "compiler/config/SparseCut.h"
#include "runtime/exec/cuda/Unions.h"

#include <cstdint>
#include <vector>

/// What the kernels of a variant that selects read beside a plan (specs/LANGUAGE.md, rules K).
namespace deft::exec {

/// How lists are cut into items of the kernel that reads them: by nothing that is in them, so that a captured
/// launch serves every step, and, but in an invariant plan, by how many queries there are.
struct SparseSplit {
  int budget = 0;       ///< tokens of a list; 0: nothing is selected
  int tileTokens = 1;   ///< items are multiples of it
  int blocksOfItem = 1; ///< that the kernel takes for an item
  int blocksAtOnce = 1; ///< that the device holds
  bool isInvariant = false;
  UnionShape unions = {}; ///< of queries that share a path's beginning; an invariant plan has none
  /// What was measured for this kernel: of this budget, by rising queries.
  std::vector<config::SparseCut> tuned = {};

  struct Cut {
    int itemTokens, parts; ///< tokens of an item, and items of a query
    bool isTuned = false;  ///< measured, and not what the costs say

    bool operator==(const Cut &) const = default;
  };
  /// The cheapest by costs, or what was measured for about so many queries.
  Cut cut(int queries) const;
  /// All that cut() may choose from, by rising costs: of no more parts than fill a wave of blocks, or a few
  /// for each query. So there is room for any of them, whatever was measured.
  std::vector<Cut> cuts(int queries) const;
  /// For so many queries, or fewer.
  int mostItems(int queries) const;

private:
  std::int64_t blocksOf(int queries) const;
  int mostParts(int queries) const;
  Cut cutInto(int parts) const;
  double cost(const Cut &cut, int queries) const;
  Cut cheapest(int queries) const;
};

/// Positions that worth has room for.
constexpr int worthStride(int positions) { return (positions + 3) / 4 * 4; }

struct SelectingTables {
  std::vector<abi::PathStretch> stretches; ///< as abi::Selected has them
  std::vector<int> stretchBegin;           ///< of each query, by the caller's index, and the end of the last
  int positions = 0;                       ///< of the longest path
  std::vector<abi::Union> unions;          ///< in the plan's order of queries
  std::vector<abi::Item> unitedItems;      ///< of these
  std::vector<abi::Item> items;            ///< of the other queries, likewise
  int partials = 0;                        ///< of both
  SparseSplit::Cut cut = {};               ///< of the latter, also where there are none
  std::vector<int> mergeQuery, mergeBegin{0}, mergeSlot; ///< as abi::MergeArgs has them

  int unitedQueries() const { return unions.empty() ? 0 : unions.back().before + unions.back().queryCount; }
};

/// Of a plan, of which at most so many queries may be in unions; `paths` is memory that calls may share.
SelectingTables selectingTables(const plan::Plan &plan, const SparseSplit &split, int mostUnited,
                                plan::Paths &paths);

} // namespace deft::exec
