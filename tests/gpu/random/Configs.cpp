#include "tests/gpu/random/Configs.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Legality.h"

namespace deft::gpu_test {

using config::Config;
using config::PhaseConfig;

namespace {

std::vector<PhaseConfig> legalPhases(config::Family family, const kernels::KernelShape &shape,
                                     const target::Target &target) {
  std::vector<PhaseConfig> phases;
  for (const int tileQ : {16, 32, 48, 64, 96, 128, 192, 256})
    for (const int tileKv : {16, 32, 64, 128})
      for (const int stages : {1, 2, 3, 4, 5})
        for (const int warps : {1, 2, 4, 8, 12, 16}) {
          if (warps == 16 && family != config::Family::Sm90) // of blocks of 192 rows alone
            continue;
          const PhaseConfig phase{config::familyName(family), -1, family, tileQ, tileKv, stages, warps};
          if (kernels::checkPhase(shape, phase, &target))
            phases.push_back(phase);
        }
  return phases;
}

} // namespace

std::vector<Config> randomConfigs(Random &random, const spec::Variant &variant, const target::Target &target,
                                  int more) {
  std::vector<Config> configs;
  if (auto usual = kernels::defaultConfig(variant, &target))
    configs.push_back(std::move(*usual));
  const kernels::KernelShape shape = kernels::KernelShape::of(variant);
  std::vector<PhaseConfig> phases, invariant;
  std::vector<std::vector<PhaseConfig>> others; // of each family that has some, and no invariant plans
  for (std::size_t i = 0; i < kernels::families().size(); ++i) {
    std::vector<PhaseConfig> own = legalPhases(static_cast<config::Family>(i), shape, target);
    phases.insert(phases.end(), own.begin(), own.end());
    if (kernels::families()[i]->whyNotInvariant.empty())
      invariant.insert(invariant.end(), own.begin(), own.end());
    else if (!own.empty())
      others.push_back(std::move(own));
  }
  const auto draw = [&](const std::vector<PhaseConfig> &from) {
    return from[static_cast<std::size_t>(random.below(static_cast<int>(from.size())))];
  };
  for (int i = 0; i < more && !invariant.empty(); ++i) {
    Config candidate;
    candidate.phases = {i == 0 ? draw(invariant) : draw(phases)};
    PhaseConfig wide = draw(phases);
    if (i > 0 && random.oneIn(2) && wide.tileQ > candidate.phases[0].tileQ) {
      wide.name = "wide_" + wide.name;
      wide.rowsAbove = candidate.phases[0].tileQ;
      candidate.phases.insert(candidate.phases.begin(), wide);
    }
    if (kernels::checkConfig(shape, candidate, &target))
      configs.push_back(std::move(candidate));
  }
  for (const std::vector<PhaseConfig> &own : others) {
    configs.emplace_back();
    configs.back().phases = {draw(own)};
  }
  // Half of those that can have kernels that deal tokens, and are for plans of all orders.
  for (Config &candidate : configs)
    if (random.oneIn(2))
      candidate.order = config::Order::Mixed;
  return configs;
}

} // namespace deft::gpu_test
