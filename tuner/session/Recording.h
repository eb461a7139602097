#pragma once

#include "runtime/config_cache/Entry.h"
#include "tuner/session/ClassTrees.h"
#include "tuner/space/Space.h"

#include <map>
#include <string>
#include <vector>

namespace deft::session {

/// A whole space measured on one class of trees: strategies can be judged by it without the device.
struct Recording {
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  config_cache::TreeClass treeClass;
  std::vector<std::pair<std::string, std::uint64_t>> trees; ///< workload and seed of each measured tree
  space::Space space;
  config::Config untuned;
  double untunedUs = 0;
  std::vector<double> ratios; ///< for each of space.points(): its time over the untuned config's; 0: unusable
};

/// `ratios` by the ids of configs. A point without one is unusable, except for the untuned one.
Recording recordingOf(const config_cache::DeviceKey &device, const config_cache::VariantSignature &signature,
                      const TreesOfClass &trees, const space::Space &space, const config::Config &untuned,
                      double untunedUs, const std::map<std::string, double> &ratios);

nlohmann::json toJson(const Recording &recording);
support::Result<Recording> recordingFromJson(const nlohmann::json &json);
support::Result<Recording> readRecording(const std::string &path);
support::Result<void> writeRecording(const Recording &recording, const std::string &folder);

/// "amd_epyc-c1-t12-q4-s4-d1-f0.json": the name of a recording's file in its folder.
std::string recordingName(const Recording &recording);

} // namespace deft::session
