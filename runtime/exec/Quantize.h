#pragma once

#include "compiler/spec/Tensors.h"

#include <cstdint>
#include <span>

namespace deft::exec {

/// The shape of the rows of a 16-bit tensor and of an 8-bit cache: [token][KV head][dim], packed.
struct QuantizeShape {
  std::int64_t tokens = 0;
  int kvHeads = 1;
  int dim = 0;
  spec::DType from = spec::DType::BF16;
  spec::DType to = spec::DType::F8E4M3;
};

/// to = from / scale, divided in f32, to nearest even. Values that are too large become the largest number,
/// and NaN stays NaN. `scales` has one scale in all, one per KV head, or one per KV head of each token.
void quantize(const QuantizeShape &shape, const void *from, std::span<const float> scales, void *to);

} // namespace deft::exec
