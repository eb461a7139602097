#pragma once

#include "compiler/kernels/Family.h"

#include <string>
#include <vector>

namespace deft::kernels {

/// The shape of the kernel that reads lists of tokens, which no config has: an item of it is one query, and
/// its tokens lie anywhere, so nothing hangs on the tree. Of family sm80 everywhere: on an H200 its tiles of
/// 64 tokens in a ring of two take 0.92 to 1.06 of what a dense attention over as many tokens with pages of
/// one does, whichever family computes that (tests/gpu/records/h200-select.json). Where that is too much for
/// an architecture or a head dim, the next smaller one that is legal. Of latent caches, whose lists a caller
/// hands over, it is of family sm90_latent for more than 16 heads where that is legal, else of sm80_latent.
support::Result<PhaseConfig> sparsePhase(const KernelShape &shape, const target::Target &target);

/// What else may be faster by the shape and the device, and is legal; that of sparsePhase() stands first. As
/// many warps as split a tile's rows and tokens by 16, up to eight, each with at most 32 tokens.
std::vector<PhaseConfig> sparsePhases(const KernelShape &shape, const target::Target &target);

/// Whether two of these are one kernel.
bool haveSameSparseTile(const PhaseConfig &a, const PhaseConfig &b);

/// "tiles of 64 tokens, 2 stages, 4 warps".
std::string sparseTileText(const PhaseConfig &tile);

/// Likewise of the kernel that reads unions of lists: a tile has the rows of as many queries as may be in
/// one, up to 128 rows, so that a shared token is read once.
/// Of family sm90 where that is legal: products are what the other one waits for. Of lists that a caller
/// hands over it is of family sm90_latent, or there is none.
support::Result<PhaseConfig> unitedPhase(const KernelShape &shape, const target::Target &target);

/// Whether the device writes into its items which tokens they have (templates/deft/union_abi.h).
inline bool writesUnionItems(const PhaseConfig &united) {
  return united.family == config::Family::Sm90 || united.family == config::Family::Sm90Latent;
}

} // namespace deft::kernels
