#include "runtime/plan/PagePieces.h"

#include <algorithm>

namespace deft::plan {

int pieceOf(int pageSize) {
  for (int piece = kTileTokens; piece >= kGroupTokens; piece /= 2)
    if (pageSize > 0 && pageSize % piece == 0)
      return piece;
  return 0;
}

bool areInPlace(std::span<const abi::Run> runs, const char *doesGrow, int piece) {
  for (const abi::Run &run : runs) {
    const Part pieces = wholePieces(run, run.tokens, piece, 0);
    const Part groups = piece == kGroupTokens ? pieces : wholePieces(run, run.tokens, kGroupTokens, 0);
    const bool movesOthers = *doesGrow++ != 0 && groups.end == run.tokens && &run != &runs.back();
    if (!groups.isEmpty() && (((run.begin + groups.begin) & (kGroupTokens - 1)) != 0 || movesOthers))
      return false;
    if (!pieces.isEmpty() && ((run.begin + pieces.begin) & (piece - 1)) != 0)
      return false;
  }
  return true;
}

bool areOnlyPieces(std::span<const abi::Run> runs, const char *doesGrow) {
  return std::all_of(runs.begin(), runs.end(), [&](const abi::Run &run) {
    const Part groups = wholePieces(run, run.tokens, kGroupTokens, 0);
    const bool isApart = *doesGrow++ != 0;
    return groups.isEmpty() || (groups.begin == 0 && groups.end == run.tokens && !isApart);
  });
}

} // namespace deft::plan
