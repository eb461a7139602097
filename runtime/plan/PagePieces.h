#pragma once

#include "runtime/plan/RunWriter.h"

#include <span>

/// Whole pages among an item's tokens, which family sm90 copies in pieces.
namespace deft::plan {

/// Tokens that are copied in one piece, at most, where they lie in one page, a power of two; 0: each by
/// itself.
int pieceOf(int pageSize);

/// Those of the first so many that lie in whole pieces; none of them are `none`.
inline Part wholePieces(const abi::Run &run, int tokens, int piece, int none) {
  const int begin = -run.location & (piece - 1);
  const int end = tokens - ((run.location + tokens) & (piece - 1));
  return begin < end ? Part{begin, end} : Part{none, none};
}

/// Whether each whole piece of a page is one of a tile, too, and stays it where leaves grow.
bool areInPlace(std::span<const abi::Run> runs, const char *doesGrow, int piece);

/// Whether runs with whole pieces have nothing beside them, so that these stay together wherever runs go.
bool areOnlyPieces(std::span<const abi::Run> runs, const char *doesGrow);

} // namespace deft::plan
