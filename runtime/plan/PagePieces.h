#pragma once

#include "runtime/plan/Deal.h"
#include "runtime/plan/RunWriter.h"

#include <cstddef>
#include <span>

/// Finds whole pages among an item's tokens, since family sm90 copies these in pieces.
namespace deft::plan {

/// The most tokens that one copy moves if they lie in one page, a power of two. 0: tokens are copied one by
/// one.
int pieceOf(int pageSize);

/// The part of the run's first `tokens` tokens that consists of whole pieces; [none, none) if there are no
/// pieces.
inline Part wholePieces(const abi::Run &run, int tokens, int piece, int none) {
  const int begin = -run.location & (piece - 1);
  const int end = tokens - ((run.location + tokens) & (piece - 1));
  return begin < end ? Part{begin, end} : Part{none, none};
}

/// The most parts that a run of an item is divided into (see forEachPart).
inline std::size_t mostParts(int piece) { return piece == 0 ? 1 : piece > kGroupTokens ? 5 : 3; }

/// Calls f(run, part, its place) for all parts of the runs, in reading order: whole pages, then other whole
/// groups, then the rest. Many parts are empty. `which(i)` is the i-th of `count` runs.
template <class Which, class F>
[[gnu::always_inline]] inline void forEachPart(std::size_t count, Which which, const abi::Run *runs,
                                               const char *doesGrow, int piece, F f) {
  using enum PartPlace;
  if (piece == 0) {
    for (std::size_t i = 0; i < count; ++i)
      f(which(i), Part{0, runs[which(i)].tokens}, First);
    return;
  }
  // Without whole pieces, the rest is the whole run, and the empty part before it must not end the run.
  const auto piecesOf = [&](int r, int size, int none) {
    // A growing run must not move the pages of others: its last piece never counts as whole.
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

/// Whether each whole piece of a page is also a piece of a tile, and stays one when leaves grow.
bool areInPlace(std::span<const abi::Run> runs, const char *doesGrow, int piece);

/// Whether the runs with whole pieces consist only of these, so that pieces stay whole wherever runs move.
bool areOnlyPieces(std::span<const abi::Run> runs, const char *doesGrow);

} // namespace deft::plan
