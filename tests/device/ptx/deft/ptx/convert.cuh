#pragma once

#include "deft/types.cuh"
#include "runtime/exec/Half.h"
#include "tests/device/Words.h"

namespace deft::ptx {

template <class Element> float toFloat(std::uint16_t bits);
template <> inline float toFloat<f16>(std::uint16_t bits) { return exec::floatFromF16(bits); }
template <> inline float toFloat<bf16>(std::uint16_t bits) { return exec::floatFromBf16(bits); }

template <class Element> unsigned pack2(float low, float high);
template <> inline unsigned pack2<f16>(float low, float high) {
  return exec::f16FromFloat(low) | static_cast<unsigned>(exec::f16FromFloat(high)) << 16;
}
template <> inline unsigned pack2<bf16>(float low, float high) {
  return exec::bf16FromFloat(low) | static_cast<unsigned>(exec::bf16FromFloat(high)) << 16;
}

template <class Config> unsigned packResult(bool isPartial, float low, float high) {
  return isPartial ? pack2<Partial<Config>>(low, high) : pack2<typename Config::Output>(low, high);
}

template <class Element> float2 unpack2(unsigned packed) {
  return {toFloat<Element>(static_cast<std::uint16_t>(packed)),
          toFloat<Element>(static_cast<std::uint16_t>(packed >> 16))};
}

inline float exp2Fast(float x) { return std::exp2(x); }
inline float reciprocalFast(float x) { return 1.f / x; }
inline float log2Fast(float x) { return std::log2(x); }

} // namespace deft::ptx
