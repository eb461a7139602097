// Any bytes as a file of configs, or as one config: what is read is written and read again unchanged, files
// merge, and what passes the rules of a machine makes plans.
#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Legality.h"
#include "runtime/config_cache/ConfigFile.h"
#include "runtime/config_cache/VariantLegality.h"
#include "runtime/plan/Planner.h"
#include "tests/fuzz/Require.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace deft;
using fuzz::require;

namespace {

/// A prompt of 300 tokens and three branches.
tree::KvTree smallTree() {
  tree::KvTree tree;
  const int root = *tree.addNode(-1, 300, 0);
  for (int i = 0; i < 3; ++i)
    (void)*tree.addQuery(*tree.addNode(root, 20 + i, 320 + 64 * i));
  return tree;
}

/// Where the rules allow it; plans may refuse it, but make it they must not lose their way.
void plan(const config::Config &config) {
  static const tree::KvTree tree = smallTree();
  const kernels::KernelShape shape{{8, 2, spec::Tensors::alike(128)}};
  plan::VariantFacts facts;
  facts.ratio = 4;
  facts.kvHeads = 2;
  const bool isLegal =
      kernels::checkConfig(shape, config, nullptr) ||
      std::any_of(target::targets().begin(), target::targets().end(), [&](const target::Target &target) {
        return kernels::checkConfig(shape, config, &target).ok();
      });
  if (!isLegal)
    return;
  if (const auto made = plan::makePlan(tree, facts, config, 7); !made)
    require(made.error().code != support::ErrorCode::Internal, "a bug: " + made.error().message);
}

void readFile(std::string_view text) {
  const config_cache::FileReading reading = config_cache::parseConfigFile(text, "fuzz.json");
  if (reading.state != config_cache::FileState::Good) {
    require(!reading.message.empty(), "a state without a message");
    return;
  }
  const std::string written = config_cache::formatConfigFile(reading.file);
  const auto again = config_cache::parseConfigFile(written, "again.json");
  require(again.state == config_cache::FileState::Good, "what was written is refused: " + again.message);
  require(config_cache::formatConfigFile(again.file) == written, "a file that is changed by being read");
  const auto merged = config_cache::mergeFiles(reading.file, again.file);
  require(merged.ok(), merged.ok() ? "" : "a file does not merge with itself: " + merged.error().message);
  // The first time brings what is not understood into an order; there it stays.
  const auto twice = config_cache::mergeFiles(*merged, *merged);
  require(twice.ok() && config_cache::formatConfigFile(*twice) == config_cache::formatConfigFile(*merged),
          "a file that is changed by merging with itself");
  for (const config_cache::Entry &entry : reading.file.entries)
    plan(entry.config);
}

void readOne(std::string_view text, config::DeviceKind device) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded())
    return;
  const auto config = config::configFromJson(json, device);
  if (!config) {
    require(!config.error().message.empty(), "an error without a message");
    return;
  }
  const auto again = config::configFromJson(config::toJson(*config), device);
  require(again.ok() && config::toJson(*again) == config::toJson(*config), "a config that JSON changes");
  plan(*config);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  readFile(text);
  for (const auto device : {config::DeviceKind::Gpu, config::DeviceKind::Cpu})
    readOne(text, device);
  return 0;
}
