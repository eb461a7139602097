#pragma once

#include <algorithm>
#include <cstdint>

/// Of stretches of tokens with or without a slope (abi::Run, Segment): token t is seen by the queries
/// [queryBegin + slope * t, queryEnd).
namespace deft::plan {

/// So many of its tokens, from the first on, one of its readers sees.
template <class Stretch> int tokensSeen(const Stretch &stretch, int query) {
  return stretch.slope == 0 ? stretch.tokens : std::min(stretch.tokens, query - stretch.queryBegin + 1);
}

/// Pairs of a token and a query that sees it.
template <class Stretch> std::int64_t pairsOf(const Stretch &stretch) {
  const std::int64_t tokens = stretch.tokens, all = tokens * (stretch.queryEnd - stretch.queryBegin);
  return stretch.slope == 0 ? all : all - tokens * (tokens - 1) / 2;
}

/// It loses its first tokens, so many and not all.
template <class Stretch> void dropFirst(Stretch &stretch, int tokens) {
  stretch.begin += tokens;
  stretch.tokens -= tokens;
  stretch.queryBegin += stretch.slope != 0 ? tokens : 0;
}

} // namespace deft::plan
