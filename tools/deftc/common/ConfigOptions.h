#pragma once

#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/common/DeviceInput.h"

#include <memory>
#include <optional>
#include <string>

/// Shared parts of the commands that choose a config.
namespace deft::cli {

/// Adds --config.
void addConfigOption(CLI::App &command, std::string &path);

/// Adds --untuned, which excludes --config.
void addUntunedFlag(CLI::App &command, bool &isUntuned);

/// The error for a named file of configs, or a named config, that does not exist.
support::Error absentConfig(const std::string &path);

/// Registers the files in which configs are searched (--config and the environment) as inputs of the command;
/// an error if one that is named does not exist or cannot be used.
support::Result<void> readsConfigs(Context &context, const std::string &overridePath);

/// Which configs a command may use.
struct ConfigSource {
  std::string overridePath;
  bool isUntuned = false; ///< ignores tuned configs: the analytic choice, by the device's prices
  bool hasSparse = false; ///< includes entries for sparse layers, for an attention that selects
  std::optional<config::Config> fixed = {}; ///< used before all others if the device can run it
  std::string fixedName = {};               ///< the name of its origin
};

/// The configs for a device, from the files that --config and the environment name. Faults of files are
/// printed as warnings.
std::shared_ptr<const config_cache::ConfigCache> loadConfigs(Context &context, const ConfigSource &source,
                                                             const config_cache::DeviceKey &device);

/// Chooses configs for a program on a device.
support::Result<config_cache::ConfigChooser> chooserFor(Context &context, const program::Program &program,
                                                        const ChosenDevice &device,
                                                        const std::string &overridePath);

/// If the user gives a single config that cannot be used, this is an error, not a fallback.
support::Result<void> checkGiven(const config_cache::Ruling &ruling);

/// "wide 64 rows x 64 tokens, 3 stages, 4 warps; narrow ...", or "items of at most 64 rows" if only rows
/// matter.
std::string phasesText(const config::Config &config);

/// "node_chunk, chunk 512; wide 64 rows x ...".
std::string configText(const config::Config &config);

/// The name of a default config, from its differences to the others: "rows_128", "rows_64_dealt".
std::string defaultName(const config::Config &config);

/// "override none; user FOLDER; installed FOLDER".
std::string placesText(const config_cache::Places &places);

/// "exact: tuned for this class on this device, 1.31 times as fast as untuned; class c1-t14-q6-s3-d2-f0,
/// reasoning".
std::string rulingText(const config_cache::Ruling &ruling);

} // namespace deft::cli
