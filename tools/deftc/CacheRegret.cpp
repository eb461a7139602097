#include "compiler/config/DefaultConfig.h"
#include "runtime/config_cache/Regret.h"
#include "runtime/jit/CpuConfig.h"
#include "tools/deftc/CacheCommand.h"
#include "tools/deftc/DeviceInput.h"
#include "tools/deftc/Numbers.h"

#include <nlohmann/json.hpp>

#include <ostream>

namespace deft::cli {

using config_cache::RegretReport;

namespace {

std::string percent(const std::optional<double> &regret) {
  return regret ? rounded(100 * *regret, 1) + " %" : "not timed";
}

void printRegret(Context &context, const RegretReport &report) {
  for (const config_cache::RegretRow &row : report.rows) {
    context.out << keyOf(row.hidden.entry) << ", " << familyName(familyOf(row.hidden.entry.treeClass))
                << '\n';
    for (const config_cache::RegretOffer &offer : row.offers)
      context.out << "  " << config_cache::ruleName(offer.candidate.rule) << ": " << percent(offer.regret)
                  << (offer.candidate.from ? ", " + keyOf(offer.candidate.from->entry) : "") << '\n';
  }
  for (const config_cache::RuleRegret &rule : report.rules) {
    context.out << "rule " << config_cache::ruleName(rule.rule) << ": "
                << counted(rule.offers, "time", "times") << " timed, " << rule.chosen
                << " of them chosen; regret " << percent(rule.median) << " in the median, "
                << percent(rule.worst) << " at worst";
    if (rule.compared > 0)
      context.out << "; at least as fast as the next rule " << rule.atLeastAsFast << " of "
                  << counted(rule.compared, "time", "times");
    context.out << '\n';
  }
  if (report.rows.empty())
    context.out << "no entry of this device is fresh\n";
}

int regret(Context &context, DeviceOptions options, const std::string &configPath, bool asJson) {
  const auto device = chooseDevice(options, config_cache::defaultPlaces(configPath));
  if (!device)
    return reportError(context, device.error());
  config_cache::RegretRequest request;
  request.target = device->target;
  request.untuned = [&](const config_cache::VariantSignature &signature) {
    const spec::Variant variant = signature.variant();
    return device->target ? config::defaultConfig(variant, *device->target)
                          : jit::cpuConfig(variant, device->key.units);
  };
  const auto report = reportRegret(*loadConfigs(context, configPath, device->key), request);
  if (!report)
    return reportError(context, report.error());
  if (asJson)
    context.out << toJson(*report).dump(2) << '\n';
  else
    printRegret(context, *report);
  return kExitOk;
}

} // namespace

void addCacheRegret(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand(
      "regret", "Hide each entry in turn, and say what the rules would choose and cost without it");
  struct Options {
    DeviceOptions device;
    std::string config;
    bool asJson = false;
  };
  auto options = std::make_shared<Options>();
  addDeviceOptions(*command, options->device);
  addConfigOption(*command, options->config);
  command->add_flag("--json", options->asJson, "Print JSON");
  command->footer(
      "Nothing is timed: what entries remember is told, the untuned choice and configs that are the "
      "same.");
  context.onRun(command, [&context, options] {
    return regret(context, options->device, options->config, options->asJson);
  });
}

} // namespace deft::cli
