#pragma once

#include "compiler/spec/Tensors.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/DeviceKey.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace deft::config_cache {

/// Where an entry comes from.
struct Provenance {
  std::string deftcVersion; ///< "0.1.0"
  std::string kernelHash;   ///< of the kernels that were timed; see kernelHash()
  std::string date;         ///< "2026-11-21T08:30:00Z"
  std::string driver;       ///< of a GPU: what the driver calls itself; else empty
  std::string note;         ///< for people

  bool operator==(const Provenance &) const = default;
};

nlohmann::json toJson(const Provenance &provenance);
support::Result<Provenance> provenanceFromJson(const nlohmann::json &object);

/// What a compiler sees of a C++ text that has no literal with `//` in it: no comments and no layout.
std::string codeOf(std::string_view text);

/// Names the kernels of this build that are for such tensors: device code of a GPU (its comments and layout
/// apart), which is other code where values are in keys and where products are of 8 bits; the code generator
/// of a CPU. Entries with another hash are stale: their times were those of other kernels.
const std::string &kernelHash(DeviceKey::Kind kind, const spec::Tensors &tensors);

/// Of the kernels alone that sparse layers run, likewise.
const std::string &sparseKernelHash();

/// Now, or so far ahead, as Provenance::date has it.
std::string timestamp(std::chrono::seconds ahead = {});

} // namespace deft::config_cache
