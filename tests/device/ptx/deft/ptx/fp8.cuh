#pragma once

#include "deft/ptx/convert.cuh"
#include "runtime/exec/Fp8.h"

namespace deft::ptx {

template <> inline float toFloat<e4m3>(std::uint16_t bits) {
  return exec::floatFromE4m3(static_cast<std::uint8_t>(bits));
}
template <> inline float toFloat<e5m2>(std::uint16_t bits) {
  return exec::floatFromE5m2(static_cast<std::uint8_t>(bits));
}

/// Of two bytes of a register.
template <class Element> unsigned halvesOf(unsigned four, unsigned low, unsigned high) {
  const auto valueOf = [&](unsigned byte) {
    return toFloat<Element>(static_cast<std::uint16_t>(four >> 8 * byte & 0xff));
  };
  return pack2<f16>(valueOf(low), valueOf(high));
}

template <class Element> void toHalves(unsigned four, unsigned (&halves)[2]) {
  halves[0] = halvesOf<Element>(four, 0, 1);
  halves[1] = halvesOf<Element>(four, 2, 3);
}

template <class Element> void toColumns(unsigned four, unsigned (&halves)[2]) {
  halves[0] = halvesOf<Element>(four, 0, 2);
  halves[1] = halvesOf<Element>(four, 1, 3);
}

} // namespace deft::ptx
