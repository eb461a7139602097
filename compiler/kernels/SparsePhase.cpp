#include "compiler/kernels/SparsePhase.h"

#include "compiler/kernels/Legality.h"

#include <algorithm>

namespace deft::kernels {

support::Result<PhaseConfig> sparsePhase(const KernelShape &shape, const target::Target &target) {
  const int rows = shape.fewestRows(), rowWarps = rows / 16;
  support::Error first;
  for (const int tokens : {64, 32, 16}) {
    // As many warps as split a tile by 16 tokens, where few split its rows.
    const int warps =
        std::max(std::max(rowWarps, tokens / 32), std::min(4, tokens / 16) / rowWarps * rowWarps);
    const PhaseConfig phase{"sparse", -1, config::Family::Sm80, rows, tokens, /*stages=*/2, warps};
    const auto legal = checkPhase(shape, phase, &target);
    if (legal)
      return phase;
    if (first.message.empty())
      first = legal.error();
  }
  return first;
}

support::Result<PhaseConfig> unitedPhase(const KernelShape &shape, const target::Target &target) {
  constexpr int kMostOfSm90 = 128; // columns: with more there are no registers for what tells of tokens
  const PhaseConfig hopper{"united", -1, config::Family::Sm90, 128, 64, /*stages=*/4, /*warps=*/12};
  if (shape.tensors.v.dim <= kMostOfSm90 && checkPhase(shape, hopper, &target))
    return hopper;
  constexpr int kMostQueries = 32, kMostRows = 128, kLeastWarps = 4;
  support::Error first;
  for (int rows = std::max(shape.fewestRows(), std::min(kMostRows, kMostQueries * shape.ratio() / 16 * 16));
       rows >= shape.fewestRows(); rows = rows > 16 ? rows / 32 * 16 : 0)
    for (const auto &[tokens, stages] : {std::pair(64, 3), std::pair(64, 2), std::pair(32, 2)}) {
      const int rowWarps = rows / 16;
      const int warps = rowWarps * std::max(1, std::min(kLeastWarps / rowWarps, tokens / 16));
      const PhaseConfig phase{"united", -1, config::Family::Sm80, rows, tokens, stages, warps};
      const auto legal = checkPhase(shape, phase, &target);
      if (legal)
        return phase;
      if (first.message.empty())
        first = legal.error();
    }
  return first;
}

} // namespace deft::kernels
