#pragma once

#include "compiler/codegen/cuda/VariantSource.h"

namespace deft::test {

/// The source of a variant with one parameter and with empty hooks.
inline codegen::cuda::VariantSource sampleSource() {
  codegen::cuda::VariantSource source;
  source.name = "llama";
  source.queryHeads = 32;
  source.kvHeads = 8;
  source.tensors = spec::Tensors::alike(128);
  source.tensors.out.dtype = spec::DType::F16;
  source.withLse = true;
  source.pageSize = 16;
  source.params = {"cap"};
  source.hooks = "struct Params {};\nstruct Variant {};\n";
  return source;
}

} // namespace deft::test
