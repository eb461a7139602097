#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::package {

nlohmann::json toJson(const codegen::cuda::VariantSource &source);
support::Result<codegen::cuda::VariantSource> variantSourceFromJson(const nlohmann::json &json);

} // namespace deft::package
