#include "tools/deftc/ConfigOptions.h"

#include <ostream>

namespace deft::cli {

void addConfigOption(CLI::App &command, std::string &path) {
  command.add_option("--config", path,
                     "A file with a config, or of tuned ones, that is used before all others; also "
                     "DEFT_CONFIG_PATH");
}

std::shared_ptr<const config_cache::ConfigCache>
loadConfigs(Context &context, const std::string &overridePath, const config_cache::DeviceKey &device) {
  auto cache = std::make_shared<config_cache::ConfigCache>(
      config_cache::ConfigCache::load(config_cache::defaultPlaces(overridePath), device));
  for (const std::string &note : cache->notes())
    context.err << "warning: " << note << '\n';
  return cache;
}

std::string selectionText(const config_cache::Selection &selection) {
  return config_cache::ruleName(selection.rule()) + ": " + selection.chosen.why() + "; class " +
         selection.treeClass.text() + ", " +
         config_cache::familyName(config_cache::familyOf(selection.treeClass));
}

} // namespace deft::cli
