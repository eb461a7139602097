#pragma once

#include "compiler/target/Target.h"
#include "runtime/config_cache/ConfigCache.h"
#include "tools/deftc/common/Context.h"

#include <string>

namespace deft::cli {

/// For which device a config is chosen.
struct DeviceOptions {
  std::string backend; ///< "cpu", "cuda"; empty: a GPU where one is named or there is one
  std::string device;  ///< a part of the name of one that there are configs for; empty: this machine's
  int threads = 0;     ///< of the CPU; 0: all
};

/// Adds --backend and --device.
void addDeviceOptions(CLI::App &command, DeviceOptions &options);

struct ChosenDevice {
  config_cache::DeviceKey key;
  const target::Target *target = nullptr; ///< null: the CPU
};

/// Whether the device is meant by `part`: of its name, or the beginning of its file's; an empty one means
/// all.
bool isNamed(const config_cache::DeviceKey &key, const std::string &part);

support::Result<ChosenDevice> chooseDevice(const DeviceOptions &options, const config_cache::Places &places);

} // namespace deft::cli
