#pragma once

#include "compiler/package/VariantSource.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::package {

nlohmann::json toJson(const VariantSource &source);
support::Result<VariantSource> variantSourceFromJson(const nlohmann::json &json);

} // namespace deft::package
