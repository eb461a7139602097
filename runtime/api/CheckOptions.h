#pragma once

#include "runtime/api/Convert.h"
#include "runtime/exec/cpu/Processors.h"

#include <deft/attention.hpp>
#include <deft/plan.hpp>

#include <cstdint>
#include <optional>
#include <string>

/// Values that a caller's type can hold and that mean nothing. Enums may have been cast from integers.
namespace deft::api {

inline Result<void> checkRange(const std::string &what, long long value, long long least, long long most,
                               const std::string &hint = "") {
  if (value >= least && value <= most)
    return {};
  return usage(what + " is " + std::to_string(value) + ", not between " + std::to_string(least) + " and " +
                   std::to_string(most),
               hint);
}

/// `what` names the member: "RuntimeOptions::threads".
inline Result<void> checkThreads(const std::string &what, int threads) {
  return checkRange(what, threads, 0, exec::kMostThreads, "0 takes all processors");
}

inline Result<void> checkPartition(const PlanOptions &options) {
  return options.partition
             ? checkRange("PlanOptions::partition", static_cast<long long>(*options.partition),
                          static_cast<long long>(Partition::Query), static_cast<long long>(Partition::Auto),
                          "cast no other to a Partition")
             : Result<void>();
}

/// Strides of a cache that is not packed must not be negative. 0 is one: heads may share their tokens.
inline Result<void> checkStrides(const std::optional<CacheStrides> &strides) {
  if (strides)
    for (const auto &[name, value] : {std::pair("page", strides->page), std::pair("token", strides->token),
                                      std::pair("head", strides->head)})
      if (value < 0)
        return usage(std::string("CacheStrides::") + name + " is " + std::to_string(value) + ", less than 0");
  return {};
}

/// From one query to the next in q or out. `what` names the member.
inline Result<void> checkRowStride(const std::string &what, std::int64_t stride, const TensorType &tensor,
                                   int queryHeads) {
  const std::int64_t row = std::int64_t{queryHeads} * tensor.dim;
  if (stride == 0 || stride >= row)
    return {};
  return usage(what + " is " + std::to_string(stride) + ", less than the " + std::to_string(row) +
               " elements of a query");
}

/// What a caller says of how many pages the cache has, of a contiguous one tokens, of which a plan reads the
/// first `tableTokens`. `what` names the member.
inline Result<void> checkCachePages(const std::string &what, const std::optional<std::int64_t> &pages,
                                    int pageSize, int tableTokens) {
  if (pages && *pages < 0)
    return usage(what + " is " + std::to_string(*pages) + ", less than 0");
  if (pages && pageSize == 0 && *pages < tableTokens)
    return usage("the cache has " + std::to_string(*pages) + " tokens, the tree's lie in the first " +
                 std::to_string(tableTokens));
  return {};
}

} // namespace deft::api
