#pragma once

#include "runtime/plan/TreeView.h"

namespace deft::plan {

/// The fewest queries that make a causal stretch: queries of one node that end at consecutive tokens. Fewer
/// become segments of their own, which kernels may deal to warps.
constexpr int kLeastCausal = 8;

/// Cuts the tokens of a place where its own queries end. Query `firstQuery + i` of the plan's order sees
/// `seen(i)` of them, which must not decrease. Calls put(segment) for all tokens that the last query sees,
/// with readers up to `queryEnd`, and returns their number. Queries that end at consecutive tokens share one
/// segment with a slope, one token each.
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
