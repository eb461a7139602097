#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/dialect/Deft.h"
#include "compiler/support/Result.h"

namespace deft::codegen::cuda {

/// The CUDA half of a variant, from optimised IR: its facts, and `struct Params` and `struct Variant` as
/// text. The text depends only on the IR. An operation without a CUDA form is an internal error, because
/// every expression of the language has one.
support::Result<VariantSource> emitVariantSource(dialect::AttentionOp attention);

} // namespace deft::codegen::cuda
