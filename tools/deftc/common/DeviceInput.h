#pragma once

#include "compiler/target/Target.h"
#include "runtime/config_cache/ConfigCache.h"
#include "tools/deftc/common/Context.h"

#include <string>

namespace deft::cli {

/// The device to choose a config for.
struct DeviceOptions {
  std::string backend; ///< "cpu", "cuda"; empty: a GPU if one is named or present
  std::string device;  ///< part of the name of a device with configs; empty: this machine's
  int threads = 0;     ///< of a CPU; 0: all
};

/// Adds --backend and --device.
void addDeviceOptions(CLI::App &command, DeviceOptions &options);

struct ChosenDevice {
  config_cache::DeviceKey key;
  const target::Target *target = nullptr; ///< null: the CPU
};

/// Whether `part` names the device: a part of its name, or the beginning of its file's name; an empty text
/// matches every device.
bool isNamed(const config_cache::DeviceKey &key, const std::string &part);

support::Result<ChosenDevice> chooseDevice(const DeviceOptions &options, const config_cache::Places &places);

} // namespace deft::cli
