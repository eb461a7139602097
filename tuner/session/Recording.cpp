#include "tuner/session/Recording.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/JsonFields.h"
#include "runtime/tree/StrictJson.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

namespace deft::session {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr int kVersion = 1;

Error badRecording(const std::string &what) {
  return {ErrorCode::Diagnostics, "recorded space: " + what, ""};
}

/// Thousandths of the untuned config's time: a file of integers is small, and times are no more exact.
constexpr double kUnit = 1000;

} // namespace

Recording recordingOf(const config_cache::DeviceKey &device, const config_cache::VariantSignature &signature,
                      const TreesOfClass &trees, const space::Space &space, const config::Config &untuned,
                      double untunedUs, const std::map<std::string, double> &ratios) {
  Recording recording{device, signature, trees.treeClass, {}, space, untuned, untunedUs, {}};
  for (int i = 0; i < trees.searched; ++i) {
    const Sample &sample = *trees.samples[static_cast<std::size_t>(i)];
    recording.trees.emplace_back(sample.name, sample.seed);
  }
  for (const space::Point &point : space.points()) {
    const std::string id = space::configId(space.configOf(point));
    const auto found = ratios.find(id);
    const double unmeasured = id == space::configId(untuned) ? 1.0 : 0.0;
    recording.ratios.push_back(found != ratios.end() ? found->second : unmeasured);
  }
  return recording;
}

json toJson(const Recording &recording) {
  json trees = json::array(), ratios = json::array();
  for (const auto &[workload, seed] : recording.trees)
    trees.push_back({{"workload", workload}, {"seed", seed}});
  for (const double ratio : recording.ratios)
    ratios.push_back(std::llround(ratio * kUnit));
  return {{"format", "deft-space"},
          {"version", kVersion},
          {"device", config_cache::toJson(recording.device)},
          {"signature", recording.signature.text()},
          {"class", recording.treeClass.text()},
          {"trees", std::move(trees)},
          {"space", space::toJson(recording.space)},
          {"untuned", config::toJson(recording.untuned)},
          {"untuned_us", std::round(recording.untunedUs * 100) / 100},
          {"thousandths", std::move(ratios)}};
}

Result<Recording> recordingFromJson(const json &object) try {
  if (object.value("format", "") != "deft-space" || object.value("version", 0) != kVersion)
    return badRecording("it is not of version " + std::to_string(kVersion));
  const auto device = config_cache::deviceKeyFromJson(object.at("device"));
  if (!device)
    return device.error();
  const auto signature = config_cache::VariantSignature::parse(object.at("signature").get<std::string>());
  const auto treeClass = config_cache::TreeClass::parse(object.at("class").get<std::string>());
  if (!signature || !treeClass)
    return badRecording("its signature or its class is not understood");
  auto space = space::spaceFromJson(object.at("space"));
  if (!space)
    return space.error();
  const auto untuned = config::configFromJson(object.at("untuned"), device->kind);
  if (!untuned)
    return untuned.error();
  Recording recording{*device, *signature, *treeClass, {}, std::move(*space), *untuned, 0, {}};
  recording.untunedUs = object.at("untuned_us").get<double>();
  for (const json &tree : object.at("trees"))
    recording.trees.emplace_back(tree.at("workload").get<std::string>(),
                                 tree.at("seed").get<std::uint64_t>());
  if (recording.trees.empty())
    return badRecording("it has no trees");
  for (const json &ratio : object.at("thousandths"))
    recording.ratios.push_back(ratio.get<double>() / kUnit);
  if (recording.ratios.size() != recording.space.points().size())
    return badRecording(std::to_string(recording.ratios.size()) + " times for " +
                        std::to_string(recording.space.points().size()) + " points");
  return recording;
} catch (const json::exception &error) {
  return badRecording(support::faultText(error));
}

Result<Recording> readRecording(const std::string &path) {
  const auto text = support::readFile(path);
  if (!text)
    return text.error();
  const auto object = tree::parseStrictJson(*text);
  if (!object)
    return badRecording("`" + path + "`: " + object.error().message);
  if (!object->is_object())
    return badRecording("`" + path + "` is no JSON object");
  auto recording = recordingFromJson(*object);
  if (!recording)
    return Error{recording.error().code, "`" + path + "`: " + recording.error().message, ""};
  return recording;
}

Result<void> writeRecording(const Recording &recording, const std::string &folder) {
  std::error_code ignored; // if the folder is missing, writing the file fails
  std::filesystem::create_directories(folder, ignored);
  const auto path = std::filesystem::path(folder) / recordingName(recording);
  return support::writeFileAtomically(path.string(), toJson(recording).dump() + "\n");
}

std::string recordingName(const Recording &recording) {
  std::string device = recording.device.fileName();
  device.resize(device.size() - std::string(".json").size());
  return device + "-q" + std::to_string(recording.signature.queryHeads) + "-kv" +
         std::to_string(recording.signature.kvHeads) + "-" + recording.treeClass.text() + ".json";
}

} // namespace deft::session
