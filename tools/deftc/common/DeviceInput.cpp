#include "tools/deftc/common/DeviceInput.h"

#include "runtime/config_cache/SparseFiles.h"
#include "runtime/device/Device.h"
#include "runtime/exec/cpu/Processors.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

namespace deft::cli {

using config_cache::DeviceKey;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

std::string lowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Result<DeviceKey> thisGpu() {
  const auto driver = device::Driver::load();
  if (!driver)
    return driver.error();
  const auto device = device::Device::open(*driver);
  if (!device)
    return device.error();
  return DeviceKey::ofGpu((*device)->facts());
}

/// Of the devices that there are files for, the one whose name or file name has `part` in it.
Result<DeviceKey> namedDevice(const DeviceOptions &options, const config_cache::Places &places) {
  std::vector<DeviceKey> fitting, all;
  const auto see = [&](const auto &found) {
    const DeviceKey &key = found.reading.file.device;
    const bool isOfBackend =
        options.backend.empty() || (options.backend == "cpu") == (key.kind == DeviceKey::Kind::Cpu);
    if (found.reading.state != config_cache::FileState::Good || !isOfBackend ||
        std::find(all.begin(), all.end(), key) != all.end())
      return;
    all.push_back(key);
    if (isNamed(key, options.device))
      fitting.push_back(key);
  };
  for (const config_cache::FoundFile &found : config_cache::findFiles(places))
    see(found);
  for (const config_cache::FoundSparseFile &found : config_cache::findSparseFiles(places))
    see(found);
  if (fitting.size() == 1)
    return fitting.front();
  std::string known;
  for (const DeviceKey &key : fitting.empty() ? all : fitting)
    known += (known.empty() ? "" : ", ") + key.text();
  if (!fitting.empty())
    return Error{ErrorCode::Usage, "`" + options.device + "` names several devices: " + known, ""};
  const std::string kind = options.backend.empty() ? "" : " of the back end `" + options.backend + "`";
  return Error{ErrorCode::Usage, "there are no configs for a device `" + options.device + "`" + kind,
               known.empty() ? "there are no configs; see deftc cache list" : "there are for " + known};
}

} // namespace

void addDeviceOptions(CLI::App &command, DeviceOptions &options) {
  command.add_option("--backend", options.backend, "Device of the config; default: a GPU if present")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--device", options.device,
                     "Part of the name of a device with tuned configs, such as h200; default: this machine");
}

bool isNamed(const DeviceKey &key, const std::string &part) {
  return lowerCase(key.name).find(lowerCase(part)) != std::string::npos || key.fileName().starts_with(part);
}

Result<ChosenDevice> chooseDevice(const DeviceOptions &options, const config_cache::Places &places) {
  DeviceKey key;
  if (!options.device.empty()) {
    auto named = namedDevice(options, places);
    if (!named)
      return named.error();
    key = std::move(*named);
  } else if (auto gpu = options.backend == "cpu" ? Result<DeviceKey>(Error{}) : thisGpu()) {
    key = std::move(*gpu);
  } else if (options.backend == "cuda") {
    Error error = gpu.error();
    error.hint = "name a device with --device; deftc cache list shows devices with configs";
    return error;
  } else {
    key = DeviceKey::ofCpu(options.threads > 0 ? options.threads : exec::usableProcessors());
  }
  const target::Target *target = targetOf(key);
  if (key.kind == DeviceKey::Kind::Gpu && !target)
    return Error{ErrorCode::Environment, "no kernels for " + key.text(),
                 "deftc knows " + target::targetNames()};
  return ChosenDevice{std::move(key), target};
}

} // namespace deft::cli
