#pragma once

#include "compiler/kernels/Legality.h"

/// Rules of all families of GPUs that read latent caches.
namespace deft::kernels {

bool hasLatentTensors(const PhaseSite &site);
std::string otherThanLatentTensors(const PhaseSite &site);
/// V is the beginning of K. Both have q's dtype, or one of 8 bits, with scales in rows or without.
inline constexpr PhaseRule kLatentTensors = {"tensors", hasLatentTensors, otherThanLatentTensors,
                                             useOtherFamily};

bool canMakeQueries(const PhaseSite &site);
std::string tooLongQueries(const PhaseSite &site);
std::string makeQueriesBefore(const PhaseSite &site);
/// A hook of q has rows that a warp holds.
inline constexpr PhaseRule kShortQueries = {"query hook", canMakeQueries, tooLongQueries, makeQueriesBefore};

bool hasNoKeyHook(const PhaseSite &site);
std::string hasKeyHook(const PhaseSite &site);
std::string useCpu(const PhaseSite &site);
/// Keys are not made: values are read from them as they lie in memory.
inline constexpr PhaseRule kNoKeyHook = {"key hook", hasNoKeyHook, hasKeyHook, useCpu};

/// Columns of K that V does not have.
inline int ropeDim(const KernelShape &shape) { return shape.tensors.k.dim - shape.tensors.v.dim; }

} // namespace deft::kernels
