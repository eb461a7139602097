#pragma once

#include "deft/select_abi.h"

namespace deft::select {

/// A score's rank as an unsigned number in the same order. -0 counts as 0, NaN as the lowest finite number,
/// and -inf, which has a weight of 0, as hidden.
__device__ __forceinline__ unsigned keyOf(float score) {
  constexpr unsigned kOfLowest = 0x00800000u, kOfMinusInfinity = 0x007fffffu;
  const unsigned bits = __float_as_uint(score + 0.f);
  const unsigned key = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  if (score != score)
    return kOfLowest;
  return key == kOfMinusInfinity ? abi::kHiddenKey : key;
}

} // namespace deft::select
