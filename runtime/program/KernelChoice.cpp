#include "runtime/program/KernelChoice.h"

namespace deft::program {

support::Result<KernelChoice> chooseKernels(const Program &program, const device::DeviceFacts &facts,
                                            const std::shared_ptr<const config_cache::ConfigCache> &configs,
                                            const tree::KvTree &first) {
  const auto untuned = program.untunedConfigs(facts.major, facts.minor);
  if (!untuned)
    return untuned.error();
  const auto chooserWith = [&](std::shared_ptr<const config_cache::ConfigCache> tuned) {
    return config_cache::ConfigChooser(std::move(tuned), program.sharedVariant(),
                                       target::targetForDevice(facts.major, facts.minor), *untuned,
                                       facts.multiprocessors);
  };
  KernelChoice choice{{}, chooserWith(configs)};
  std::string warning;
  const auto kernelsOf = [&](const config_cache::Ruling &ruling) {
    return program.cudaKernels(facts.major, facts.minor, ruling.config(), warning, &configs->sparse());
  };
  const config_cache::Ruling &ruling = choice.chooser.choose(first);
  const bool isTuned =
      ruling.rule() != config_cache::Rule::Heuristic && ruling.rule() != config_cache::Rule::Override;
  auto kernels = kernelsOf(ruling);
  if (!kernels && isTuned) {
    choice.warnings.push_back("the tuned config is not used: " + kernels.error().message);
    choice.chooser = chooserWith(std::make_shared<config_cache::ConfigCache>(configs->withoutEntries()));
    kernels = kernelsOf(choice.chooser.choose(first));
  }
  if (!kernels)
    return kernels.error();
  choice.kernels = std::move(*kernels);
  choice.sparseCuts = configs->sparse().cutsFor(program.variant(), choice.kernels);
  if (!warning.empty())
    choice.warnings.push_back(std::move(warning));
  return choice;
}

} // namespace deft::program
