#include "tuner/space/Constraints.h"

#include "compiler/kernels/Occupancy.h"

#include <algorithm>

namespace deft::space {
namespace {

using config::PhaseConfig;

/// With fewer, a multiprocessor cannot hide the latency of copies.
constexpr int kFewestWarpsPerSm = 4;

template <typename Holds> bool allPhases(const Combination &combination, const Holds &holds) {
  return std::all_of(combination.config.phases.begin(), combination.config.phases.end(), holds);
}

int rowsOfQuery(const Combination &combination) {
  return combination.target ? combination.shape.rowsOfQuery() : combination.shape.ratio();
}

/// Partitions that compare ways to divide by their prices.
bool compares(spec::Partition partition) {
  return partition == spec::Partition::Greedy || partition == spec::Partition::Auto;
}

constexpr Constraint kConstraints[] = {
    {"rows of a query", "a tile holds all rows of a query", false,
     [](const Combination &combination) {
       return allPhases(combination,
                        [&](const PhaseConfig &phase) { return phase.tileQ >= rowsOfQuery(combination); });
     }},
    {"rows of a core", "the sums of an item's rows stay in a core's cache", false,
     [](const Combination &combination) {
       return allPhases(combination, [&](const PhaseConfig &phase) {
         const int most = kernels::familyOf(phase, combination.families).mostTunedRows;
         return most == 0 || phase.tileQ <= most;
       });
     }},
    {"boundary", "a boundary leaves both phases items that fit them", false,
     [](const Combination &combination) {
       const auto &phases = combination.config.phases;
       if (kernels::countsRowsAlone(combination.config, combination.families))
         return true;
       for (std::size_t i = 0; i + 1 < phases.size(); ++i)
         if (phases[i].rowsAbove >= phases[i].tileQ || phases[i].rowsAbove > phases[i + 1].tileQ ||
             phases[i].rowsAbove < rowsOfQuery(combination) || phases[i].tileQ <= phases[i + 1].tileQ)
           return false;
       return true;
     }},
    {"occupancy", "a multiprocessor runs at least four warps", false,
     [](const Combination &combination) {
       return !combination.target || allPhases(combination, [&](const PhaseConfig &phase) {
         return kernels::blocksPerSm(combination.shape, phase, combination.target, combination.families) *
                    phase.warps >=
                kFewestWarpsPerSm;
       });
     }},
    {"prices", "other prices matter to partitions that compare by them", true,
     [](const Combination &combination) {
       return combination.prices == 0 || compares(combination.config.partition);
     }},
};

} // namespace

std::span<const Constraint> constraints() { return kConstraints; }

const char *brokenConstraint(const Combination &combination, bool ofPlan, bool ofPhases) {
  if (ofPhases)
    for (const PhaseConfig &phase : combination.config.phases)
      if (const auto *rule = kernels::brokenRule(
              {combination.shape, phase, combination.target, kernels::familyOf(phase, combination.families)}))
        return rule->name;
  for (const Constraint &constraint : kConstraints)
    if ((constraint.isOfPlan ? ofPlan : ofPhases) && !constraint.holds(combination))
      return constraint.name;
  return nullptr;
}

} // namespace deft::space
