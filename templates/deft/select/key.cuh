#pragma once

#include "deft/select_abi.h"

namespace deft::select {

/// An unsigned number for a score. A larger score has a larger key. -0 counts as 0, and NaN as the lowest
/// finite number. -inf counts as hidden, since its weight is 0.
__device__ __forceinline__ unsigned keyOf(float score) {
  constexpr unsigned kOfLowest = 0x00800000u, kOfMinusInfinity = 0x007fffffu;
  const unsigned bits = __float_as_uint(score + 0.f);
  const unsigned key = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  if (score != score)
    return kOfLowest;
  return key == kOfMinusInfinity ? abi::kHiddenKey : key;
}

} // namespace deft::select
