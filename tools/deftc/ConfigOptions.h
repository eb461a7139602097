#pragma once

#include "runtime/config_cache/ConfigChooser.h"
#include "tools/deftc/Context.h"

#include <memory>
#include <string>

/// What commands have in common that choose a config.
namespace deft::cli {

/// Adds --config.
void addConfigOption(CLI::App &command, std::string &path);

/// The configs for a device, as --config and the environment say; what is wrong with files is printed as
/// warnings.
std::shared_ptr<const config_cache::ConfigCache>
loadConfigs(Context &context, const std::string &overridePath, const config_cache::DeviceKey &device);

/// "exact: tuned for this class on this device, 1.31 times as fast as untuned; class c1-t14-q6-s3-d2-f0,
/// reasoning".
std::string selectionText(const config_cache::Selection &selection);

} // namespace deft::cli
