#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::spec {

/// Version 1 had one head_dim and one dtype for q, k and v. Version 2 had no sinks.
constexpr int kVariantVersion = 3;

/// The checked variant, as `deftc emit --as json` prints it and packages store it: keys are the members in
/// snake case, without source ranges. An expression is a list of nodes, operands before their users. `inf` is
/// written as a string, because JSON has no such number.
nlohmann::ordered_json toJson(const Variant &variant);

/// Reads the output of toJson. Checks again everything that other code relies on (types, order of operands,
/// limits), because the file may be malicious.
support::Result<Variant> variantFromJson(const nlohmann::json &json);

} // namespace deft::spec
