#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace deft::config {

/// The name in the language: "node_chunk".
std::string partitionName(spec::Partition partition);
std::optional<spec::Partition> partitionFromName(std::string_view name);
std::string familyName(Family family);
/// "from_root", "alternate", "mixed".
std::string orderName(Order order);
std::optional<Order> orderFromName(std::string_view name);
/// A text for people that follows the rest of a config's description.
std::string orderText(Order order);

/// A CPU's phases also store the `family` of a GPU, because older programs read the same files. The device
/// decides which kernels run there.
nlohmann::json toJson(const PhaseConfig &phase);
/// Omits `cost` and `order` if they are the default.
nlohmann::json toJson(const Config &config);
/// Whether both give the same JSON.
bool areEqual(const Config &a, const Config &b);

/// A config for this kind of device. Checks types and names, but not legality. Unknown keys are errors,
/// because a misspelt key would otherwise silently leave a default.
support::Result<Config> configFromJson(const nlohmann::json &json, DeviceKind device);

} // namespace deft::config
