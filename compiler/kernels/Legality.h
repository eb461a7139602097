#pragma once

#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"

/// Which configs can be compiled and launched. A message names the observed number and the limit.
namespace deft::kernels {

/// The first rule that the phase breaks, of those of every family of the device and its family's own; null:
/// it is legal.
const PhaseRule *brokenRule(const PhaseSite &site);
/// What a broken rule has to say.
support::Error errorOf(const PhaseRule &broken, const PhaseSite &site);
bool hasAlikeTensors(const PhaseSite &site);
std::string unlikeTensors(const PhaseSite &site);
/// A rule of families that know of one kind of tensors only: q, k, v and the output of one dim, q, k and v of
/// one dtype of 16 bits, and V in memory of its own.
inline constexpr PhaseRule kAlikeTensors = {"tensors", hasAlikeTensors, unlikeTensors, nullptr};

/// A rule of families that take K and V of any dims, each in memory of its own: of q's dtype of 16 bits, or
/// both of 8-bit floats.
bool hasTensorsApart(const PhaseSite &site);
std::string tensorsNotApart(const PhaseSite &site);
inline constexpr PhaseRule kTensorsApart = {"tensors", hasTensorsApart, tensorsNotApart, nullptr};

/// What rules say of a dim of K that they refuse: "head_dim is 72", or "key_dim is 72" where V has another.
std::string keyDimText(const spec::Tensors &tensors);

/// A hint for rules: what other families serve the shape there.
std::string useOtherFamily(const PhaseSite &site);

support::Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase,
                                 const target::Target *target, Families all = families());
/// Every phase, and that they are ordered, hold a query, end with one that serves all items, and are named
/// apart where each is a kernel.
support::Result<void> checkConfig(const KernelShape &shape, const config::Config &config,
                                  const target::Target *target, Families all = families());

/// Whether a row's sums in such a phase do not depend on who else is in an item.
support::Result<void> checkInvariant(const spec::Tensors &tensors, const PhaseConfig &phase,
                                     Families all = families());

} // namespace deft::kernels
