#pragma once

#include "runtime/config_cache/Entry.h"
#include "tuner/session/ClassTrees.h"
#include "tuner/space/Space.h"

#include <map>
#include <string>
#include <vector>

namespace deft::session {

/// A whole space measured on one class of trees: what strategies are judged by where the device is not.
struct Recording {
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  config_cache::TreeClass treeClass;
  std::vector<std::pair<std::string, std::uint64_t>> trees; ///< workload and seed of each that was measured
  space::Space space;
  config::Config untuned;
  double untunedUs = 0;
  std::vector<double> ratios; ///< of each of space.points(): its time over the untuned config's; 0: unusable
};

/// `ratios` by the ids of configs. A point that has none is unusable, but for the untuned one.
Recording recordingOf(const config_cache::DeviceKey &device, const config_cache::VariantSignature &signature,
                      const TreesOfClass &trees, const space::Space &space, const config::Config &untuned,
                      double untunedUs, const std::map<std::string, double> &ratios);

nlohmann::json toJson(const Recording &recording);
support::Result<Recording> recordingFromJson(const nlohmann::json &json);
support::Result<Recording> readRecording(const std::string &path);
support::Result<void> writeRecording(const Recording &recording, const std::string &folder);

/// "amd_epyc-c1-t12-q4-s4-d1-f0.json": where a recording is written, in a folder of them.
std::string recordingName(const Recording &recording);

} // namespace deft::session
