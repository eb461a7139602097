#pragma once

#include "runtime/plan/Paths.h"
#include "templates/deft/select_abi.h"

#include <vector>

/// What the kernels of a variant that selects read beside a plan (specs/LANGUAGE.md, rules K).
namespace deft::exec {

/// How lists are cut into items of the kernel that reads them: by nothing that is in them, so that a captured
/// launch serves every step, and, but in an invariant plan, by how many queries there are.
struct SparseSplit {
  int budget = 0;     ///< tokens of a list; 0: nothing is selected
  int tileTokens = 1; ///< items are multiples of it
  int items = 1;      ///< that keep the device busy
  bool isInvariant = false;

  /// Tokens of an item, and items of a query.
  int itemTokens(int queries) const;
  int parts(int queries) const;
  /// For so many queries, or fewer.
  int mostItems(int queries) const;

private:
  int mostParts() const;
  int wantedParts(int queries) const;
};

/// Positions that worth has room for.
constexpr int worthStride(int positions) { return (positions + 3) / 4 * 4; }

struct SelectingTables {
  std::vector<abi::PathStretch> stretches; ///< as abi::Selected has them
  std::vector<int> stretchBegin;           ///< of each query, by the caller's index, and the end of the last
  int positions = 0;                       ///< of the longest path
  std::vector<abi::Item> items;            ///< of the sparse attention, in the plan's order of queries
  int parts = 0; ///< of a query; where there are several, query q of the plan's order has the partials from
                 ///< q * parts on
};

/// Of a plan; `paths` is memory that calls may share.
SelectingTables selectingTables(const plan::Plan &plan, const SparseSplit &split, plan::Paths &paths);

} // namespace deft::exec
