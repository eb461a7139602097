#pragma once

#include "runtime/plan/Paths.h"
#include "templates/deft/select_abi.h"
#include "templates/deft/union_abi.h"

#include <vector>

/// Decides which queries of a plan read the union of their lists (templates/deft/union_abi.h).
namespace deft::exec {

/// The properties of the kernel that reads unions.
struct UnionShape {
  int queries = 0;          ///< most queries of a union; 0: there is no such kernel
  int parts = 1;            ///< over all unions, for one list; enough to keep the device busy
  int itemsOfPart = 1;      ///< one per KV head if the device writes items (templates/deft/union_abi.h)
  bool writesItems = false; ///< kernels::writesUnionItems
  double mostRead = 1;      ///< a union pays if it reads at most this share of its queries' lists

  /// The parts of each union, if there are `unions` of them.
  int partsOf(int unions) const;
  /// The most items, and the most partials, for up to `queries` queries.
  int mostItems(int queries) const;
  int mostPartials(int queries) const;
};

/// Chooses unions of consecutive queries in plan order, of at most `mostQueries` queries in all. The tokens
/// of the lists are not known yet. So it assumes random lists and takes the unions that save most under this
/// assumption. Every further token that lists have in common is a gain.
std::vector<abi::Union> findUnions(const plan::Plan &plan, const plan::Paths &paths, const UnionShape &shape,
                                   int budget, int mostQueries);

} // namespace deft::exec
