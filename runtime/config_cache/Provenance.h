#pragma once

#include "compiler/spec/Tensors.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/DeviceKey.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace deft::config_cache {

/// The origin of an entry.
struct Provenance {
  std::string deftcVersion; ///< "0.1.0"
  std::string kernelHash;   ///< of the timed kernels; see kernelHash()
  std::string date;         ///< "2026-11-21T08:30:00Z"
  std::string driver;       ///< of a GPU: its name for itself; else empty
  std::string note;         ///< for people

  bool operator==(const Provenance &) const = default;
};

nlohmann::json toJson(const Provenance &provenance);
support::Result<Provenance> provenanceFromJson(const nlohmann::json &object);

/// A C++ text without comments and layout, as compilers see it. It must have no literals that contain `//`.
std::string codeOf(std::string_view text);

/// Identifies the kernels of this build for such tensors: for a GPU the device code without comments and
/// layout, which differs if values are in keys or products are of 8 bits; for a CPU the code generator.
/// Entries with another hash are stale, because their times belong to other kernels.
const std::string &kernelHash(DeviceKey::Kind kind, const spec::Tensors &tensors);

/// The same for only the kernels of sparse layers.
const std::string &sparseKernelHash();

/// The current time, or that time plus `ahead`, in the form of Provenance::date.
std::string timestamp(std::chrono::seconds ahead = {});

} // namespace deft::config_cache
