#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"
#include "runtime/device/Device.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace deft::config_cache {

/// The device to which times belong. There is one file of configs for each.
struct DeviceKey {
  using Kind = config::DeviceKind;

  Kind kind = Kind::Cpu;
  std::string arch;   ///< GPU: its compute capability, "sm_90"; CPU: "x86-64-v4"
  int vectorBits = 0; ///< CPU only
  int units = 0;      ///< GPU: multiprocessors; CPU: threads in use
  std::string name;   ///< the model: "NVIDIA H200", "AMD EPYC 9654 96-Core Processor"

  bool operator==(const DeviceKey &) const = default;

  static DeviceKey ofGpu(const device::DeviceFacts &facts);
  /// This machine's processor with `threads` threads.
  static DeviceKey ofCpu(int threads);

  /// Whether the other is a different model with suitable configs: same architecture, as many units.
  bool isSibling(const DeviceKey &other) const;

  /// "sm_90-132-nvidia_h200.json": each key has its own name.
  std::string fileName() const;
  /// "NVIDIA H200 (sm_90, 132 multiprocessors)".
  std::string text() const;
};

nlohmann::json toJson(const DeviceKey &key);
support::Result<DeviceKey> deviceKeyFromJson(const nlohmann::json &json);

/// The target whose kernels the GPU runs; null for a processor and for a GPU that no table contains.
const target::Target *targetOf(const DeviceKey &key);

/// The processor's name from the system, or "unnamed".
std::string cpuModelName();

} // namespace deft::config_cache
