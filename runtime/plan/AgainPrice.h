#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/Family.h"
#include "runtime/plan/TreeView.h"
#include "runtime/plan/VariantFacts.h"

namespace deft::plan {

/// The bytes of tokens that several tiles read, because more queries see them than fit into a tile. 0 on a
/// processor, since its prices do not depend on them.
double bytesReadAgain(const TreeView &view, const VariantFacts &facts, const config::Config &config,
                      kernels::Families families = kernels::families());

/// Returns the prices for trees with this many repeated bytes. A GPU's last-level cache (lastLevelMB) holds
/// only part of these bytes. The other repeated reads come from memory, so they cost as much as first reads.
config::CostCoefficients ofBytes(config::CostCoefficients cost, double readAgain);

/// Returns the prices for one tree.
inline config::CostCoefficients ofTree(const config::CostCoefficients &cost, const TreeView &view,
                                       const VariantFacts &facts, const config::Config &config,
                                       kernels::Families families = kernels::families()) {
  return ofBytes(cost, bytesReadAgain(view, facts, config, families));
}

} // namespace deft::plan
