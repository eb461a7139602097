#pragma once

#include "runtime/api/Call.h"
#include "runtime/exec/cpu/Processors.h"

/// Checks for values that fit a caller's type but are meaningless.
namespace deft::api {

/// The limit of a spec's `page_size`.
inline constexpr int kLargestPage = 1 << 20;

inline Result<void> checkRange(const std::string &field, long long value, long long least, long long most,
                               const std::string &hint = "") {
  if (value >= least && value <= most)
    return {};
  return wrong(field,
               "is " + std::to_string(value) + ", not between " + std::to_string(least) + " and " +
                   std::to_string(most),
               hint);
}

inline Result<void> checkThreads(const std::string &field, int threads) {
  return checkRange(field, threads, 0, exec::kMostThreads, "0 takes all processors");
}

} // namespace deft::api
