#pragma once

#include <algorithm>
#include <cstdint>

/// Stretches of tokens with or without a slope (abi::Run, Segment): the queries [queryBegin + slope * t,
/// queryEnd) see token t.
namespace deft::plan {

/// How many tokens of the stretch, from the first on, one of its readers sees.
template <class Stretch> int tokensSeen(const Stretch &stretch, int query) {
  return stretch.slope == 0 ? stretch.tokens : std::min(stretch.tokens, query - stretch.queryBegin + 1);
}

/// The number of (query, token) pairs in which the query sees the token.
template <class Stretch> std::int64_t pairsOf(const Stretch &stretch) {
  const std::int64_t tokens = stretch.tokens, all = tokens * (stretch.queryEnd - stretch.queryBegin);
  return stretch.slope == 0 ? all : all - tokens * (tokens - 1) / 2;
}

/// Removes the first `tokens` tokens, which must not be all.
template <class Stretch> void dropFirst(Stretch &stretch, int tokens) {
  stretch.begin += tokens;
  stretch.tokens -= tokens;
  stretch.queryBegin += stretch.slope != 0 ? tokens : 0;
}

} // namespace deft::plan
