#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/plan/VariantFacts.h"

#include <cstdint>

namespace deft::plan {

/// Bytes that one layer moves under a plan: all heads, no padding.
struct IoBytes {
  std::int64_t cache = 0;     ///< K and V as items read them: a token counts once per read
  std::int64_t cacheOnce = 0; ///< the first read of each token; a cache may serve the others
  std::int64_t queries = 0;   ///< queries as items read them
  std::int64_t outputs = 0;   ///< written once
  std::int64_t partials = 0;  ///< values and log-sum-exps, written, and read by the merge
  std::int64_t masks = 0;     ///< for each run, two integers that say which queries see it
  std::int64_t work = 0;      ///< the rest of items and runs, the merge map

  std::int64_t total() const { return cache + queries + outputs + partials + masks + work; }
  IoBytes &operator+=(const IoBytes &other);
  bool operator==(const IoBytes &) const = default;
};

/// Counts. Linear in the plan.
IoBytes io(const Plan &plan, const VariantFacts &facts);

} // namespace deft::plan
