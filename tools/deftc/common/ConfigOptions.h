#pragma once

#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/common/DeviceInput.h"

#include <memory>
#include <optional>
#include <string>

/// What commands have in common that choose a config.
namespace deft::cli {

/// Adds --config.
void addConfigOption(CLI::App &command, std::string &path);

/// Adds --untuned, which excludes --config.
void addUntunedFlag(CLI::App &command, bool &isUntuned);

/// A file of configs, or a config, that is named and not there.
support::Error absentConfig(const std::string &path);

/// Tells the command's files which ones configs are looked for in, as --config and the environment say; an
/// error where one of these names what is not there or cannot be used.
support::Result<void> readsConfigs(Context &context, const std::string &overridePath);

/// Which configs count.
struct ConfigSource {
  std::string overridePath;
  bool isUntuned = false; ///< none, whatever was tuned: the analytic choice, by the device's prices
  bool hasSparse = false; ///< also what was tuned for sparse layers: of an attention that selects
  std::optional<config::Config> fixed = {}; ///< comes before all others, where the device can run it
  std::string fixedName = {};               ///< whose it is
};

/// The configs for a device, as --config and the environment say; what is wrong with files is printed as
/// warnings.
std::shared_ptr<const config_cache::ConfigCache> loadConfigs(Context &context, const ConfigSource &source,
                                                             const config_cache::DeviceKey &device);

/// Chooses configs of a program for a device.
support::Result<config_cache::ConfigChooser> chooserFor(Context &context, const program::Program &program,
                                                        const ChosenDevice &device,
                                                        const std::string &overridePath);

/// A single config that the user gave is an error where it cannot be used, not a wish.
support::Result<void> checkGiven(const config_cache::Ruling &ruling);

/// "wide 64 rows x 64 tokens, 3 stages, 4 warps; narrow ...", or "items of at most 64 rows" where rows alone
/// count.
std::string phasesText(const config::Config &config);

/// "node_chunk, chunk 512; wide 64 rows x ...".
std::string configText(const config::Config &config);

/// A default config by what tells it from a variant's others: "rows_128", "rows_64_dealt".
std::string defaultName(const config::Config &config);

/// "override none; user FOLDER; installed FOLDER".
std::string placesText(const config_cache::Places &places);

/// "exact: tuned for this class on this device, 1.31 times as fast as untuned; class c1-t14-q6-s3-d2-f0,
/// reasoning".
std::string rulingText(const config_cache::Ruling &ruling);

} // namespace deft::cli
