#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace deft::config {

/// As the language writes it: "node_chunk".
std::string partitionName(spec::Partition partition);
std::optional<spec::Partition> partitionFromName(std::string_view name);
std::string familyName(Family family);
/// "from_root", "alternate", "mixed".
std::string orderName(Order order);
std::optional<Order> orderFromName(std::string_view name);
/// For people, behind what else is said of a config.
std::string orderText(Order order);

/// Of a CPU's phases, too, `family` is the name of a GPU's: older programs read the same files. Which kernels
/// run there follows from the device.
nlohmann::json toJson(const PhaseConfig &phase);
/// `cost` and `order` are written where they are not the default.
nlohmann::json toJson(const Config &config);
/// Whether both are written alike.
bool areEqual(const Config &a, const Config &b);

/// A config for a device of this kind. Checks types and names, not legality. Unknown keys are errors: a
/// misspelt one must not fall back to a default in silence.
support::Result<Config> configFromJson(const nlohmann::json &json, DeviceKind device);

} // namespace deft::config
