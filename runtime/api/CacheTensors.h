#pragma once

#include "runtime/api/RunTensors.h"
#include "runtime/api/TensorCheck.h"

#include <string_view>

namespace deft::api {

/// For q, k, v and out: the name of their last dimension in the spec.
const char *dimNameOf(const spec::Variant &variant, std::string_view tensor);

/// Checks K and V, if the run reads them, and their layouts.
Result<void> checkCaches(const TensorCheck &check, const spec::Variant &variant, int tableTokens,
                         const deft_inputs &inputs, bool isGpu, RunTensors &tensors, Memory &memory);

} // namespace deft::api
