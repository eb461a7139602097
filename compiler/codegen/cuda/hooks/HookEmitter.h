#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/dialect/Deft.h"
#include "compiler/support/Result.h"

namespace deft::codegen::cuda {

/// The CUDA half of a variant from optimised IR: its facts, and `struct Params` and `struct Variant` as text.
/// The text is a function of the IR alone. An operation that has no CUDA form is an internal error: what the
/// language can say all has one.
support::Result<VariantSource> emitVariantSource(dialect::AttentionOp attention);

} // namespace deft::codegen::cuda
