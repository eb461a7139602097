#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/Family.h"
#include "runtime/plan/TreeView.h"
#include "runtime/plan/VariantFacts.h"

namespace deft::plan {

/// Prices for one tree. A GPU's last-level cache holds only part of the tokens that several tiles read. The
/// other repeated reads come from memory, so they cost as much as first reads.
config::CostCoefficients ofTree(config::CostCoefficients cost, const TreeView &view,
                                const VariantFacts &facts, const config::Config &config,
                                kernels::Families families = kernels::families());

} // namespace deft::plan
