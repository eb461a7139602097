#pragma once

#include "compiler/spec/Tensors.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::spec {

/// {"q": {"dtype": "bf16", "dim": 128}, "k", "v", "out", "value_in_key": false}, and "scale_columns": 128 if
/// rows have scales; used in variants and packages.
nlohmann::ordered_json toJson(const Tensors &tensors);

/// Checks the result with faultOf. Throws support::WrongField, for readers of objects that contain tensors.
Tensors readTensors(const nlohmann::json &json);

} // namespace deft::spec
