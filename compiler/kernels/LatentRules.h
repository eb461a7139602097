#pragma once

#include "compiler/kernels/Legality.h"

/// Rules for all GPU families that read latent caches.
namespace deft::kernels {

bool hasLatentTensors(const PhaseSite &site);
std::string otherThanLatentTensors(const PhaseSite &site);
/// V must be the beginning of K. Both have q's dtype, or an 8-bit dtype, with or without scales in rows.
inline constexpr PhaseRule kLatentTensors = {"tensors", hasLatentTensors, otherThanLatentTensors,
                                             useOtherFamily};

bool canMakeQueries(const PhaseSite &site);
std::string tooLongQueries(const PhaseSite &site);
std::string makeQueriesBefore(const PhaseSite &site);
/// With a hook of q, a warp must be able to hold a row.
inline constexpr PhaseRule kShortQueries = {"query hook", canMakeQueries, tooLongQueries, makeQueriesBefore};

bool hasNoKeyHook(const PhaseSite &site);
std::string hasKeyHook(const PhaseSite &site);
std::string useCpu(const PhaseSite &site);
/// A hook `key` is not possible: values are read from keys as they are in memory.
inline constexpr PhaseRule kNoKeyHook = {"key hook", hasNoKeyHook, hasKeyHook, useCpu};

/// Columns of K that V does not have.
inline int ropeDim(const KernelShape &shape) { return shape.tensors.k.dim - shape.tensors.v.dim; }

} // namespace deft::kernels
