#include "tools/deftc/cache/EntryTiming.h"

#include "compiler/kernels/DefaultConfig.h"
#include "runtime/program/CpuConfig.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"

namespace deft::cli {

using support::Result;

void addEntryTimingOptions(CLI::App &command, EntryTimingOptions &options) {
  command.add_option("--variant", options.variant, "The attention to use if the file defines several");
  command.add_option("--param", options.timing.params, "NAME=VALUE, where the spec has no default")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  addDeviceOptions(command, options.device);
  command.add_option("--threads", options.device.threads, "CPU threads; default: all")->check(threads());
  command
      .add_option("--workload", options.timing.families,
                  "A family of trees that were tuned on; may be repeated")
      ->type_name(kWorkloadName)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("all and rows");
  command.add_option("--workloads", options.timing.recordsFolder, "A folder of recorded workloads");
  command.add_option("--trees-per-class", options.timing.treesPerClass, "Trees of a class that are timed")
      ->check(atLeast(1))
      ->capture_default_str();
  command.add_option("--pages", options.pages, "Page order in the cache")
      ->check(CLI::IsMember({"in-order", "scattered"}))
      ->capture_default_str();
  addConfigOption(command, options.config);
}

Result<EntryTiming> EntryTiming::open(Context &context, const EntryTimingOptions &options) {
  if (auto read = readsConfigs(context, options.config); !read)
    return read.error();
  auto device = chooseDevice(options.device, config_cache::defaultPlaces(options.config));
  if (!device)
    return device.error();
  EntryTiming timing(std::move(*device), options.timing);
  timing.timing_.pages =
      options.pages == "in-order" ? tree::PlacementOrder::InOrder : tree::PlacementOrder::Scattered;
  if (!options.input.empty()) {
    auto opened = openProgram(context, options.input, options.variant);
    if (!opened)
      return opened.error();
    timing.program_.emplace(std::move(*opened));
  }
  timing.configs_ = loadConfigs(context, {options.config}, timing.device_.key);
  return timing;
}

Result<std::vector<config::Config>>
EntryTiming::untuned(const config_cache::VariantSignature &signature) const {
  const spec::Variant variant = signature.variant();
  if (device_.target)
    return program_ ? program_->untunedConfigs(device_.target->major, device_.target->minor)
                    : kernels::defaultConfigs(variant, device_.target);
  auto config = program::cpuConfig(variant, device_.key.units);
  if (!config)
    return config.error();
  return std::vector{std::move(*config)};
}

Result<regret::RegretReport> EntryTiming::report(Context &context, regret::RegretRequest request) const {
  request.target = device_.target;
  request.units = device_.key.units;
  request.untuned = [this](const config_cache::VariantSignature &signature) { return untuned(signature); };
  const Underway underway(context, program_ ? "timing entries" : "hiding entries");
  return program_ ? regret::reportTimedRegret(*configs_, request, *program_, timing_)
                  : regret::reportRegret(*configs_, request);
}

} // namespace deft::cli
