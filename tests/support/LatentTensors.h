#pragma once

#include "compiler/spec/Tensors.h"

namespace deft::test {

/// Of a latent cache, like that of DeepSeek V3: V is the first `dim` columns of K, which has `rope` more.
inline spec::Tensors latentTensors(int dim = 512, int rope = 64, spec::DType dtype = spec::DType::BF16) {
  spec::Tensors tensors = spec::Tensors::alike(dim + rope, dtype);
  tensors.v.dim = tensors.out.dim = dim;
  tensors.valueInKey = true;
  return tensors;
}

/// The same of bytes, with a scale for each `scaleColumns` columns of V in a token's row, or without any.
inline spec::Tensors latentBytes(int dim = 512, int rope = 64, int scaleColumns = 128,
                                 spec::DType dtype = spec::DType::BF16) {
  spec::Tensors tensors = latentTensors(dim, rope, dtype);
  tensors.k.dtype = tensors.v.dtype = spec::DType::F8E4M3;
  tensors.scaleColumns = scaleColumns;
  return tensors;
}

} // namespace deft::test
