#include "tools/deftc/common/ConfigOptions.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Family.h"
#include "runtime/program/CpuConfig.h"
#include "tools/deftc/common/Words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

namespace deft::cli {

namespace {

/// As --config, whose form is checked among the arguments: what is named has to be there and to be of use.
support::Result<void> checkVariable(const std::string &path) {
  std::error_code none;
  const support::Result<void> checked = std::filesystem::exists(path, none)
                                            ? config_cache::checkOverride(path)
                                            : support::Result<void>(absentConfig(path));
  if (checked)
    return checked;
  return support::Error{checked.error().code, checked.error().message, "DEFT_CONFIG_PATH names it"};
}

} // namespace

void addConfigOption(CLI::App &command, std::string &path) {
  command
      .add_option(
          "--config", path,
          "A file with one config, or with tuned ones, that overrides all others; also DEFT_CONFIG_PATH")
      ->check(CLI::Validator(
          [](const std::string &given) -> std::string {
            if (std::error_code none; !std::filesystem::exists(given, none))
              return ""; // said by readsConfigs(), as of a file that is missing
            const auto checked = config_cache::checkOverride(given);
            return checked ? std::string() : checked.error().message;
          },
          ""));
}

void addUntunedFlag(CLI::App &command, bool &isUntuned) {
  command.add_flag("--untuned", isUntuned, "Ignore tuned configs: the cost model chooses")
      ->excludes("--config");
}

support::Error absentConfig(const std::string &path) {
  return {support::ErrorCode::Environment, "cannot read `" + path + "`: No such file or directory", ""};
}

support::Result<void> readsConfigs(Context &context, const std::string &overridePath) {
  if (std::error_code none; !overridePath.empty() && !std::filesystem::exists(overridePath, none))
    return absentConfig(overridePath);
  const config_cache::Places places = config_cache::defaultPlaces(overridePath);
  if (overridePath.empty() && !places.overridePath.empty())
    if (auto checked = checkVariable(places.overridePath); !checked)
      return checked;
  if (auto read = context.files.reads(places.overridePath); !read)
    return read;
  for (const std::string &folder : {places.overridePath, places.userFolder, places.installedFolder,
                                    places.userPrices, places.userSparse, places.installedSparse})
    if (auto read = context.files.readsFolder(folder); !read)
      return read;
  return {};
}

std::shared_ptr<const config_cache::ConfigCache> loadConfigs(Context &context, const ConfigSource &source,
                                                             const config_cache::DeviceKey &device) {
  auto cache = config_cache::ConfigCache::load(config_cache::defaultPlaces(source.overridePath), device,
                                               source.hasSparse);
  for (const std::string &note : cache.notes())
    context.err << "warning: " << printable(note) << '\n';
  if (source.isUntuned)
    cache = cache.withoutEntries();
  if (source.fixed)
    cache.fix(*source.fixed, source.fixedName);
  return std::make_shared<config_cache::ConfigCache>(std::move(cache));
}

support::Result<config_cache::ConfigChooser> chooserFor(Context &context, const program::Program &program,
                                                        const ChosenDevice &device,
                                                        const std::string &overridePath) {
  const bool hasSparse = device.target && program.variant().select.has_value();
  auto configs = loadConfigs(context, {overridePath, false, hasSparse}, device.key);
  if (!device.target) {
    auto untuned = program::cpuConfig(program.variant(), device.key.units);
    if (!untuned)
      return untuned.error();
    return config_cache::ConfigChooser(std::move(configs), program.sharedVariant(), nullptr,
                                       std::move(*untuned));
  }
  auto untuned = program.untunedConfigs(device.target->major, device.target->minor);
  if (!untuned)
    return untuned.error();
  return config_cache::ConfigChooser(std::move(configs), program.sharedVariant(), device.target,
                                     std::move(*untuned), device.key.units);
}

support::Result<void> checkGiven(const config_cache::Ruling &ruling) {
  for (const config_cache::Rejected &rejected : ruling.rejected)
    if (!rejected.entry)
      return support::Error{support::ErrorCode::Usage,
                            "`" + rejected.path + "` cannot be used: " + rejected.reason, ""};
  return {};
}

std::string phasesText(const config::Config &config) {
  if (kernels::countsRowsAlone(config))
    return "items of at most " + std::to_string(config::mostRows(config)) + " rows";
  std::string text;
  for (const config::PhaseConfig &phase : config.phases)
    text += (text.empty() ? "" : "; ") + phase.name + " " + std::to_string(phase.tileQ) + " rows x " +
            std::to_string(phase.tileKv) + " tokens, " + std::to_string(phase.stages) + " stages, " +
            std::to_string(phase.warps) + " warps";
  return text;
}

std::string configText(const config::Config &config) {
  return config::partitionName(config.partition) + ", chunk " +
         (config.chunkTokens > 0 ? std::to_string(config.chunkTokens) : "unlimited") +
         config::orderText(config.order) + "; " + phasesText(config);
}

std::string defaultName(const config::Config &config) {
  return "rows_" + std::to_string(config.phases.front().tileQ) + (kernels::isDealt(config) ? "_dealt" : "");
}

std::string placesText(const config_cache::Places &places) {
  const auto named = [](const std::string &path) { return path.empty() ? "none" : path; };
  return "override " + named(places.overridePath) + "; user " + named(places.userFolder) + "; installed " +
         named(places.installedFolder);
}

std::string rulingText(const config_cache::Ruling &ruling) {
  return config_cache::ruleName(ruling.rule()) + ": " + ruling.chosen.why() + "; class " +
         ruling.treeClass.text() + ", " + config_cache::familyName(config_cache::familyOf(ruling.treeClass));
}

} // namespace deft::cli
