#pragma once

#include "compiler/spec/Tensors.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::spec {

/// {"q": {"dtype": "bf16", "dim": 128}, "k", "v", "out", "value_in_key": false}, and where rows have scales
/// "scale_columns": 128, in variants and in packages.
nlohmann::ordered_json toJson(const Tensors &tensors);

/// Checked by faultOf. Throws support::WrongField, for readers of objects that hold one.
Tensors readTensors(const nlohmann::json &json);

} // namespace deft::spec
