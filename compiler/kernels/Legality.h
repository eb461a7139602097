#pragma once

#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"

/// Decides which configs can be compiled and launched. A message names the observed number and the limit.
namespace deft::kernels {

/// The first rule that the phase breaks, of the rules for all families of the device and then of its family;
/// null if it is legal.
const PhaseRule *brokenRule(const PhaseSite &site);
/// The error for a broken rule.
support::Error errorOf(const PhaseRule &broken, const PhaseSite &site);
bool hasAlikeTensors(const PhaseSite &site);
std::string unlikeTensors(const PhaseSite &site);
/// For families that support one kind of tensors: q, k, v and the output with one dim, q, k and v with one
/// 16-bit dtype, and V in memory of its own.
inline constexpr PhaseRule kAlikeTensors = {"tensors", hasAlikeTensors, unlikeTensors, nullptr};

/// For families that support K and V of any dims, each in memory of its own, with q's 16-bit dtype or both of
/// 8-bit floats.
bool hasTensorsApart(const PhaseSite &site);
std::string tensorsNotApart(const PhaseSite &site);
inline constexpr PhaseRule kTensorsApart = {"tensors", hasTensorsApart, tensorsNotApart, nullptr};

/// Rules name a dim of K that they refuse with this: "head_dim is 72", or "key_dim is 72" if V has another.
std::string keyDimText(const spec::Tensors &tensors);

/// A hint for rules: the other families that serve the shape there.
std::string useOtherFamily(const PhaseSite &site);

support::Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase,
                                 const target::Target *target, Families all = families());
/// Checks every phase, and all together: they must be ordered, hold a query, end with one that serves all
/// items, and have different names if each is a kernel.
support::Result<void> checkConfig(const KernelShape &shape, const config::Config &config,
                                  const target::Target *target, Families all = families());

/// An error if, in such a phase, the sums of a row depend on other rows of its item.
support::Result<void> checkInvariant(const spec::Tensors &tensors, const PhaseConfig &phase,
                                     Families all = families());

} // namespace deft::kernels
