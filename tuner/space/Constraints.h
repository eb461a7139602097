#pragma once

#include "compiler/kernels/Legality.h"

#include <optional>
#include <span>
#include <string>

namespace deft::space {

/// A config and its machine.
struct Combination {
  const kernels::KernelShape &shape;
  const target::Target *target; ///< null: a CPU
  const config::Config &config;
  int prices = 0; ///< index of the config's costPresets() entry
  kernels::Families families = kernels::families();
};

/// A condition on combinations, in addition to the rules for single phases (kernels::brokenRule): these
/// exclude legal but useless combinations from a search.
struct Constraint {
  const char *name;
  const char *why;
  bool isOfPlan; ///< checks only partition, chunk and prices; otherwise only phases
  bool (*holds)(const Combination &);
};
std::span<const Constraint> constraints();

/// The name of the first rule or constraint that a combination breaks; null: it can be measured. `ofPlan` and
/// `ofPhases` select the checks.
const char *brokenConstraint(const Combination &combination, bool ofPlan = true, bool ofPhases = true);

} // namespace deft::space
