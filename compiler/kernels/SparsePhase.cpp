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

} // namespace deft::kernels
