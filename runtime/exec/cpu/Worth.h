#pragma once

#include "runtime/exec/Selection.h"
#include "runtime/plan/Paths.h"

namespace deft::exec {

/// The worth of each token of each query's path, collected while a step attends. Each (query, group of heads,
/// position) belongs to one unit of work, so units write without locks.
struct WorthTable {
  std::vector<float> values; ///< [query, caller's index][group][tokens]
  int groups = 0;            ///< groups of a query's heads: KV heads, or query heads if each has its own list
  int tokens = 0;            ///< of the longest path

  void reset(int queries, int someGroups, int longest) {
    groups = someGroups;
    tokens = longest;
    values.assign(static_cast<std::size_t>(queries) * static_cast<std::size_t>(groups) *
                      static_cast<std::size_t>(tokens),
                  kHiddenWorth);
  }
  float *of(int query, int group) {
    return values.data() + (static_cast<std::size_t>(query) * static_cast<std::size_t>(groups) +
                            static_cast<std::size_t>(group)) *
                               static_cast<std::size_t>(tokens);
  }
};

} // namespace deft::exec
