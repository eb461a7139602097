#pragma once

#include "runtime/plan/Deal.h"
#include "runtime/plan/RunWriter.h"

#include <cstddef>
#include <span>

/// Whole pages among an item's tokens, which family sm90 copies in pieces.
namespace deft::plan {

/// Tokens that are copied in one piece, at most, where they lie in one page, a power of two; 0: each by
/// itself.
int pieceOf(int pageSize);

/// The run's tokens that lie in whole pieces, of its first `tokens` ones; [none, none) where there are no
/// such.
inline Part wholePieces(const abi::Run &run, int tokens, int piece, int none) {
  const int begin = -run.location & (piece - 1);
  const int end = tokens - ((run.location + tokens) & (piece - 1));
  return begin < end ? Part{begin, end} : Part{none, none};
}

/// So many parts an item's run has, at most (forEachPart).
inline std::size_t mostParts(int piece) { return piece == 0 ? 1 : piece > kGroupTokens ? 5 : 3; }

/// Calls f(run, part, its place) for all that runs have, in the order in which it is read: whole pages first,
/// then what else is a group, then the rest. Many parts are empty. `which(i)` is the i-th of `count` runs.
template <class Which, class F>
[[gnu::always_inline]] inline void forEachPart(std::size_t count, Which which, const abi::Run *runs,
                                               const char *doesGrow, int piece, F f) {
  using enum PartPlace;
  if (piece == 0) {
    for (std::size_t i = 0; i < count; ++i)
      f(which(i), Part{0, runs[which(i)].tokens}, First);
    return;
  }
  // Where there are none, all is behind them, and what comes before them ends no run.
  const auto piecesOf = [&](int r, int size, int none) {
    // What grows is not to move others' pages: its last piece is never a whole one.
    return wholePieces(runs[r], runs[r].tokens - doesGrow[r], size, none);
  };
  const auto groupsOf = [&](int r) { return piecesOf(r, kGroupTokens, 0); };
  const auto wholeOf = [&](int r, Part groups) { return piecesOf(r, piece, groups.begin); };
  if (piece == kGroupTokens) {
    for (std::size_t i = 0; i < count; ++i)
      f(which(i), groupsOf(which(i)), First);
  } else {
    for (std::size_t i = 0; i < count; ++i)
      f(which(i), wholeOf(which(i), groupsOf(which(i))), First);
    for (std::size_t i = 0; i < count; ++i) {
      const Part groups = groupsOf(which(i)), whole = wholeOf(which(i), groups);
      f(which(i), Part{groups.begin, whole.begin}, Inner);
      f(which(i), Part{whole.end, groups.end}, Later);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Part groups = groupsOf(which(i));
    f(which(i), Part{0, groups.begin}, Inner);
    f(which(i), Part{groups.end, runs[which(i)].tokens}, Later);
  }
}

/// Whether each whole piece of a page is one of a tile, too, and stays it where leaves grow.
bool areInPlace(std::span<const abi::Run> runs, const char *doesGrow, int piece);

/// Whether runs with whole pieces have nothing beside them, so that these stay together wherever runs go.
bool areOnlyPieces(std::span<const abi::Run> runs, const char *doesGrow);

} // namespace deft::plan
