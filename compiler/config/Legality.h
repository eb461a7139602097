#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"

#include <span>
#include <string>

/// Which configs can be compiled and launched. A message names the observed number and the limit.
namespace deft::config {

/// What of a variant decides about its configs.
struct KernelShape {
  int queryHeads = 0;
  int kvHeads = 0;
  int headDim = 0;

  int ratio() const { return queryHeads / kvHeads; }
  static KernelShape of(const spec::Variant &variant) {
    return {variant.queryHeads, variant.kvHeads, variant.headDim};
  }
};

/// The least head dim of family sm90; smaller ones were not tried.
inline constexpr int kSm90LeastHeadDim = 64;

/// 32-bit registers of a thread of the sm80 attend kernel, estimated from its fragments (accumulators,
/// scores, queries where they stay in registers) and a rest as large as no shipped spec was seen to need
/// more, so that what passes does not spill. ptxas takes less where less will do.
int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase);

/// A phase and all that its legality hangs on.
struct PhaseSite {
  const KernelShape &shape;
  const PhaseConfig &phase;
  const target::Target &target;
};

/// One condition on a phase. A rule may count on those before it.
struct PhaseRule {
  const char *name; ///< what it guards, in a word or two: "shared memory"
  enum class Of { Both, Sm80, Sm90 } family;
  bool (*holds)(const PhaseSite &);
  std::string (*message)(const PhaseSite &); ///< the observed number and the limit
  std::string (*hint)(const PhaseSite &);    ///< null: none

  bool isOf(Family other) const {
    return family == Of::Both || (family == Of::Sm80) == (other == Family::Sm80);
  }
};

/// All rules: the one place that says which kernels can be compiled and launched.
std::span<const PhaseRule> phaseRules();
/// The first that the phase breaks; null: it is legal.
const PhaseRule *brokenRule(const PhaseSite &site);

support::Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase,
                                 const target::Target &target);
/// Every phase, and that they are ordered, named apart, and end with one that serves all items.
support::Result<void> checkConfig(const KernelShape &shape, const Config &config,
                                  const target::Target &target);

} // namespace deft::config
