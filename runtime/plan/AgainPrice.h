#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/Family.h"
#include "runtime/plan/TreeView.h"
#include "runtime/plan/VariantFacts.h"

namespace deft::plan {

/// Prices for one tree on a GPU, whose last-level cache holds only so much of what several tiles read. The
/// rest of what is read again comes from memory, at the price of what is read first.
config::CostCoefficients ofTree(config::CostCoefficients cost, const TreeView &view,
                                const VariantFacts &facts, const config::Config &config,
                                kernels::Families families = kernels::families());

} // namespace deft::plan
