#pragma once

#include "compiler/config/CostCoefficients.h"
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
  double mostRead = 1;      ///< tokens of a union for each of its queries' lists, so that it pays
  bool areGiven = false;    ///< lists come with a run, from a caller
  int mostListed = 0;       ///< of these: entries of a union's lists, at most
  /// Of these: which part of a list is in another one, of a query with the same path. A caller says it.
  double overlap = 0;
  double leastSaved = 0; ///< of these: tokens that all unions read less than the lists, so that they pay

  /// Of lists of so many tokens.
  UnionShape with(int budget, double listOverlap) const;

  /// The parts of each union, if there are `unions` of them.
  int partsOf(int unions) const;
  /// The most items, and the most partials, for up to `queries` queries.
  int mostItems(int queries) const;
  int mostPartials(int queries) const;
};

/// UnionShape::leastSaved for lists that a caller hands over, if so many blocks run at once: in the time that
/// unions take by the device's prices, each block reads so many tokens.
double leastSavedOfGiven(const config::CostCoefficients &cost, int blocks);

/// Unions of queries that follow each other in the plan's order, of at most so many in all. Which tokens
/// lists will have nobody knows yet: the best that pays if they had nothing in common but what chance gives,
/// so that every token that they do agree on is gain. Of lists that a caller hands over, what pays with the
/// overlap that the caller says, for the part of their paths that queries share.
std::vector<abi::Union> findUnions(const plan::Plan &plan, const plan::Paths &paths, const UnionShape &shape,
                                   int budget, int mostQueries);

} // namespace deft::exec
