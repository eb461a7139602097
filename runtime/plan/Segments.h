#pragma once

#include "runtime/plan/TreeView.h"

namespace deft::plan {

/// So many queries of a node, one after the other in its tokens, make a causal stretch. Fewer are as well a
/// segment each, which kernels may deal to warps.
constexpr int kLeastCausal = 8;

/// Cuts a place's tokens where its own queries end: query `firstQuery + i` of the plan's order sees
/// `seen(i)` of them, which does not fall. Calls put(segment) for all that the last one sees, for readers up
/// to `queryEnd`, and gives how many tokens these are. Queries that end at consecutive tokens have one
/// segment with a slope for all of these, each of which is a query's own.
template <class Seen, class Put>
int cutWhereQueriesEnd(int place, int firstQuery, int count, int queryEnd, Seen seen, Put put) {
  int done = 0;
  for (int i = 0, next = 0; i < count; i = next) {
    const int end = seen(i);
    next = i + 1;
    if (end <= done)
      continue;
    while (next < count && seen(next) == end + next - i)
      ++next;
    int own = next - i;
    if (own < kLeastCausal) {
      next = i + 1;
      own = 0;
    }
    if (const int before = end - std::min(own, 1); before > done)
      put(Segment{place, done, before - done, firstQuery + i, queryEnd});
    if (own > 0)
      put(Segment{place, end - 1, own, firstQuery + i, queryEnd, 1});
    done = own > 0 ? end - 1 + own : end;
  }
  return done;
}

} // namespace deft::plan
