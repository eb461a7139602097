#pragma once

#include "compiler/dialect/Deft.h"
#include "compiler/support/Result.h"

#include <string>

namespace deft::codegen::cuda {

/// VariantSource::hooks, from optimised IR. An operation without a CUDA form is an internal error, because
/// every expression of the language has one.
support::Result<std::string> emitHooks(dialect::AttentionOp attention);

} // namespace deft::codegen::cuda
