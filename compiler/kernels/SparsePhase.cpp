#include "compiler/kernels/SparsePhase.h"

#include "compiler/kernels/Legality.h"
#include "compiler/kernels/Sm80Latent.h"
#include "compiler/kernels/Sm90Latent.h"
#include "templates/deft/union_abi.h"

#include <algorithm>
#include <vector>

namespace deft::kernels {

namespace {

/// Or why the first one is not.
support::Result<PhaseConfig> firstLegal(const std::vector<PhaseConfig> &phases, const KernelShape &shape,
                                        const target::Target &target) {
  for (const PhaseConfig &phase : phases)
    if (checkPhase(shape, phase, &target))
      return phase;
  return checkPhase(shape, phases.front(), &target).error();
}

/// The tile for lists that a caller hands over. An H200 reads those of 16 heads in 0.80 to 0.93 of the time
/// of family sm80_latent, over bytes with scales in 0.50 to 0.68 (h200-latent-lists-few.json).
support::Result<PhaseConfig> givenListPhase(const KernelShape &shape, const target::Target &target) {
  for (const PhaseConfig &phase : sm90LatentSparse(shape))
    if (checkPhase(shape, phase, &target))
      return phase;
  return firstLegal(sm80LatentSparse(shape, target), shape, target);
}

} // namespace

support::Result<PhaseConfig> sparsePhase(const KernelShape &shape, const target::Target &target) {
  const bool isLatent = shape.tensors.valueInKey;
  if (isLatent != shape.listsAreGiven)
    return isLatent ? support::Error{support::ErrorCode::Usage,
                                     "GPUs select no tokens of a latent cache (rule K8)",
                                     "pass lists (`by = caller`), or use a CPU"}
                    : support::Error{support::ErrorCode::Usage,
                                     "GPUs read lists by `caller` from latent caches only (rule K8)",
                                     "let the spec select, or use a CPU"};
  if (isLatent)
    return givenListPhase(shape, target);
  const int rows = shape.fewestRows(), rowWarps = rows / 16;
  std::vector<PhaseConfig> phases;
  for (const int tokens : {64, 32, 16}) {
    // As many warps as split a tile by 16 tokens, where few split its rows.
    const int warps =
        std::max(std::max(rowWarps, tokens / 32), std::min(4, tokens / 16) / rowWarps * rowWarps);
    phases.push_back({"sparse", -1, config::Family::Sm80, rows, tokens, /*stages=*/2, warps});
  }
  return firstLegal(phases, shape, target);
}

std::vector<PhaseConfig> sparsePhases(const KernelShape &shape, const target::Target &target) {
  constexpr int kMostWarps = 8, kMostTokensOfWarp = 32, kMostTokensOfRing = 384;
  const auto byRule = sparsePhase(shape, target);
  if (!byRule)
    return {};
  std::vector<PhaseConfig> phases{*byRule};
  if (shape.listsAreGiven) {
    for (const PhaseConfig &phase : sm80LatentSparse(shape, target))
      if (!haveSameSparseTile(phase, *byRule) && checkPhase(shape, phase, &target))
        phases.push_back(phase);
    return phases;
  }
  const int rows = shape.fewestRows(), rowWarps = rows / 16;
  for (const int tokens : {16, 32, 64, 128})
    for (int warps = rowWarps; warps <= kMostWarps && warps / rowWarps * 16 <= tokens; warps *= 2)
      for (int stages = 2; stages <= 4 && tokens * stages <= kMostTokensOfRing; ++stages) {
        const PhaseConfig phase{"sparse", -1, config::Family::Sm80, rows, tokens, stages, warps};
        if (tokens <= kMostTokensOfWarp * warps && !haveSameSparseTile(phase, *byRule) &&
            checkPhase(shape, phase, &target))
          phases.push_back(phase);
      }
  return phases;
}

bool haveSameSparseTile(const PhaseConfig &a, const PhaseConfig &b) {
  return a.tileQ == b.tileQ && a.tileKv == b.tileKv && a.stages == b.stages && a.warps == b.warps;
}

std::string sparseTileText(const PhaseConfig &tile) {
  return "tiles of " + std::to_string(tile.tileKv) + " tokens, " + std::to_string(tile.stages) + " stages, " +
         std::to_string(tile.warps) + (tile.warps == 1 ? " warp" : " warps");
}

support::Result<PhaseConfig> unitedPhase(const KernelShape &shape, const target::Target &target) {
  constexpr int kMostOfSm90 = 128; // columns: with more there are no registers for what tells of tokens
  constexpr int kMostRows = 128, kLeastWarps = 4;
  if (shape.listsAreGiven)
    return firstLegal({sm90LatentUnited(shape)}, shape, target);
  const PhaseConfig hopper{"united", -1, config::Family::Sm90, kMostRows, 64, /*stages=*/4, /*warps=*/12};
  if (std::max(shape.tensors.k.dim, shape.tensors.v.dim) <= kMostOfSm90 && checkPhase(shape, hopper, &target))
    return hopper;
  std::vector<PhaseConfig> phases;
  const int fewest = shape.fewestRows();
  for (int rows = std::max(fewest, std::min(kMostRows, abi::kMostUnited * shape.ratio() / 16 * 16));;
       rows = std::max(fewest, rows / 32 * 16)) {
    const int rowWarps = rows / 16;
    for (const auto &[tokens, stages] :
         {std::pair(64, 3), std::pair(64, 2), std::pair(32, 2), std::pair(16, 2)}) {
      const int warps = rowWarps * std::max(1, std::min(kLeastWarps / rowWarps, tokens / 16));
      phases.push_back({"united", -1, config::Family::Sm80, rows, tokens, stages, warps});
    }
    if (rows == fewest)
      break;
  }
  return firstLegal(phases, shape, target);
}

} // namespace deft::kernels
