#pragma once

#include "compiler/kernels/Legality.h"

#include <optional>
#include <span>
#include <string>

namespace deft::space {

/// A config and the machine that it is for.
struct Combination {
  const kernels::KernelShape &shape;
  const target::Target *target; ///< null: a CPU
  const config::Config &config;
  int prices = 0; ///< which of costPresets() the config has
  kernels::Families families = kernels::families();
};

/// A condition on combinations beyond those on single phases (kernels::brokenRule): these keep what is legal
/// but senseless out of a search.
struct Constraint {
  const char *name;
  const char *why;
  bool isOfPlan; ///< looks at partition, chunk and prices alone; else at phases alone
  bool (*holds)(const Combination &);
};
std::span<const Constraint> constraints();

/// The name of the first rule or constraint that a combination breaks; null: it can be measured. `ofPlan` and
/// `ofPhases` choose what is looked at.
const char *brokenConstraint(const Combination &combination, bool ofPlan = true, bool ofPhases = true);

} // namespace deft::space
