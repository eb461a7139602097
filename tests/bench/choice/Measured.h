#pragma once

#include "compiler/support/Result.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/config_cache/VariantSignature.h"
#include "runtime/tree/KvTree.h"

#include <string>
#include <vector>

/// What a device has measured: the times of many configs on the same trees.
namespace deft::choice {

struct MeasuredConfig {
  config::Config config;
  double us = 0;
};

struct MeasuredClass {
  std::string name; ///< of the first tree
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  std::vector<tree::KvTree> trees; ///< times are geometric means over them
  std::vector<MeasuredConfig> configs;
};

/// The classes of a recorded space (tests/data/spaces) or of a tuning session's journal (*.jsonl). Configs of
/// partition `auto` are left out where prices were others: what was planned so that day is planned otherwise
/// now. A class of whose trees one cannot be made again is left out, and said in `notes`.
support::Result<std::vector<MeasuredClass>>
readMeasured(const std::string &path, const std::string &workloads, std::vector<std::string> &notes);

} // namespace deft::choice
