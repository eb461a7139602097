#include "tuner/space/Constraints.h"

#include "compiler/kernels/Occupancy.h"

#include <algorithm>

namespace deft::space {
namespace {

using config::PhaseConfig;

/// Below, a multiprocessor cannot cover the time that a copy takes.
constexpr int kFewestWarpsPerSm = 4;

template <typename Holds> bool allPhases(const Candidate &candidate, const Holds &holds) {
  return std::all_of(candidate.config.phases.begin(), candidate.config.phases.end(), holds);
}

/// Partitions that compare ways to cut by their prices.
bool compares(spec::Partition partition) {
  return partition == spec::Partition::Greedy || partition == spec::Partition::Auto;
}

constexpr Constraint kConstraints[] = {
    {"rows of a query", "a tile holds all rows of a query", false,
     [](const Candidate &candidate) {
       return allPhases(candidate,
                        [&](const PhaseConfig &phase) { return phase.tileQ >= candidate.shape.ratio(); });
     }},
    {"rows of a core", "the sums of an item's rows stay in a core's cache", false,
     [](const Candidate &candidate) {
       return allPhases(candidate, [&](const PhaseConfig &phase) {
         const int most = kernels::familyOf(phase, candidate.families).mostTunedRows;
         return most == 0 || phase.tileQ <= most;
       });
     }},
    {"boundary", "a boundary leaves both phases items that fit them", false,
     [](const Candidate &candidate) {
       const auto &phases = candidate.config.phases;
       if (kernels::countsRowsAlone(candidate.config, candidate.families))
         return true;
       for (std::size_t i = 0; i + 1 < phases.size(); ++i)
         if (phases[i].rowsAbove >= phases[i].tileQ || phases[i].rowsAbove > phases[i + 1].tileQ ||
             phases[i].rowsAbove < candidate.shape.ratio() || phases[i].tileQ <= phases[i + 1].tileQ)
           return false;
       return true;
     }},
    {"occupancy", "a multiprocessor runs at least four warps", false,
     [](const Candidate &candidate) {
       return !candidate.target || allPhases(candidate, [&](const PhaseConfig &phase) {
         return kernels::blocksPerSm(candidate.shape, phase, candidate.target, candidate.families) *
                    phase.warps >=
                kFewestWarpsPerSm;
       });
     }},
    {"prices", "other prices matter to partitions that compare by them", true,
     [](const Candidate &candidate) {
       return candidate.prices == 0 || compares(candidate.config.partition);
     }},
};

} // namespace

std::span<const Constraint> constraints() { return kConstraints; }

const char *brokenConstraint(const Candidate &candidate, bool ofPlan, bool ofPhases) {
  if (ofPhases)
    for (const PhaseConfig &phase : candidate.config.phases)
      if (const auto *rule = kernels::brokenRule(
              {candidate.shape, phase, candidate.target, kernels::familyOf(phase, candidate.families)}))
        return rule->name;
  for (const Constraint &constraint : kConstraints)
    if ((constraint.isOfPlan ? ofPlan : ofPhases) && !constraint.holds(candidate))
      return constraint.name;
  return nullptr;
}

} // namespace deft::space
