#pragma once

#include "compiler/spec/Tensors.h"

namespace deft::test {

/// The tensors of a latent cache like DeepSeek V3's: V is the first `dim` columns of K; K has `rope` more.
inline spec::Tensors latentTensors(int dim = 512, int rope = 64, spec::DType dtype = spec::DType::BF16) {
  spec::Tensors tensors = spec::Tensors::alike(dim + rope, dtype);
  tensors.v.dim = tensors.out.dim = dim;
  tensors.valueInKey = true;
  return tensors;
}

/// The same in bytes, with a scale in the row for each `scaleColumns` columns of V; 0: without scales.
inline spec::Tensors latentBytes(int dim = 512, int rope = 64, int scaleColumns = 128,
                                 spec::DType dtype = spec::DType::BF16) {
  spec::Tensors tensors = latentTensors(dim, rope, dtype);
  tensors.k.dtype = tensors.v.dtype = spec::DType::F8E4M3;
  tensors.scaleColumns = scaleColumns;
  return tensors;
}

} // namespace deft::test
