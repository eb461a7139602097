#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/KvTree.h"

namespace deft::plan {

/// All that a plan needs to know of a variant.
struct VariantFacts {
  int ratio = 1; ///< query heads to a KV head: rows of a query in an item
  int kvHeads = 1;

  static VariantFacts of(const spec::Variant &variant) { return {variant.ratio(), variant.kvHeads}; }
};

/// Makes the work list of one tree: a pure function, the same arguments give the same plan. `blocks` is
/// how many blocks (CPU: threads) the machine runs at a time; it matters where the config leaves the
/// chunk size open. Fails on a config without a phase that can hold one query.
support::Result<Plan> makePlan(const tree::KvTree &tree, const VariantFacts &facts,
                               const config::Config &config, int blocks);

/// What a plan costs, for people and for tests.
struct PlanSummary {
  int items = 0;
  int directItems = 0; ///< write the output, no partial
  long long itemTokens =
      0; ///< tokens read by all items, for each KV head: shared ones as often as they are read
  long long rowTokens = 0; ///< (row, token) pairs that a query sees, for each KV head
  int partialSlots = 0;
  int mergedQueries = 0;
};
PlanSummary summarize(const Plan &plan, const VariantFacts &facts);

} // namespace deft::plan
