#pragma once

#include "compiler/dialect/Deft.h"
#include "compiler/package/VariantSource.h"
#include "compiler/support/Result.h"

namespace deft::codegen::cuda {

/// The CUDA half of a variant from optimised IR: its facts, and `struct Params` and `struct Variant` as text.
/// The text is a function of the IR alone. An operation that has no CUDA form is an internal error: what the
/// language can say all has one.
support::Result<package::VariantSource> emitVariantSource(dialect::AttentionOp attention);

} // namespace deft::codegen::cuda
