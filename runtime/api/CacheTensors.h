#pragma once

#include "runtime/api/RunTensors.h"
#include "runtime/api/TensorCheck.h"

#include <string_view>

namespace deft::api {

/// Of q, k, v and out: what their last dimension is called in the spec.
const char *dimNameOf(const spec::Variant &variant, std::string_view tensor);

/// K and V, where the run reads them, and where their tokens lie.
Result<void> checkCaches(const TensorCheck &check, const spec::Variant &variant, int tableTokens,
                         const deft_inputs &inputs, bool isGpu, RunTensors &tensors, Memory &memory);

} // namespace deft::api
