#pragma once

#include "compiler/spec/Tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

/// The 8-bit floats of caches, in host code. Conversion to f32 is exact. From f32 it rounds to nearest even
/// and saturates: larger numbers and infinities become the largest number. NaN stays NaN.
namespace deft::exec {

/// A format, without its sign bit.
struct Fp8Format {
  int mantissaBits, bias;
  std::uint8_t largest; ///< code of the largest number
  float largestValue;
};
/// No infinities; all ones is the only NaN. From 2^-9 to 448.
constexpr Fp8Format kE4m3{3, 7, 0x7e, 448};
/// The upper byte of f16, so it has infinities, which are read but never written. From 2^-16 to 57344.
constexpr Fp8Format kE5m2{2, 15, 0x7b, 57344};

inline float floatFromE4m3(std::uint8_t code) {
  // Exponent and mantissa shifted into place are 2^120 too small, subnormals included.
  const std::uint32_t absolute = code & 0x7fu;
  const float magnitude = std::bit_cast<float>(absolute << 20) * 0x1p120f;
  const std::uint32_t special = absolute == 0x7fu ? 0x7fc00000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special |
                              (std::uint32_t{code} & 0x80u) << 24);
}

inline float floatFromE5m2(std::uint8_t code) {
  const std::uint32_t absolute = code & 0x7fu;
  const float magnitude = std::bit_cast<float>(absolute << 21) * 0x1p112f;
  const std::uint32_t special = absolute >= 0x7cu ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special |
                              (std::uint32_t{code} & 0x80u) << 24);
}

inline float floatFromFp8(std::uint8_t code, spec::DType dtype) {
  return dtype == spec::DType::F8E5M2 ? floatFromE5m2(code) : floatFromE4m3(code);
}

inline std::uint8_t fp8FromFloat(float value, const Fp8Format &format) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80u);
  const float absolute = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7f;
  if (absolute >= format.largestValue)
    return sign | format.largest;
  const int leastExponent = 1 - format.bias;     // of the normal numbers
  if (absolute < std::ldexp(1.f, leastExponent)) // rounding up into the normal range is right
    return sign | static_cast<std::uint8_t>(
                      std::nearbyint(std::ldexp(absolute, format.mantissaBits - leastExponent)));
  const int shift = 23 - format.mantissaBits;
  const std::uint32_t rebiased =
      std::bit_cast<std::uint32_t>(absolute) - (static_cast<std::uint32_t>(127 - format.bias) << 23);
  const std::uint32_t rounded = (rebiased + (1u << (shift - 1)) - 1 + ((rebiased >> shift) & 1)) >> shift;
  return sign | static_cast<std::uint8_t>(std::min<std::uint32_t>(rounded, format.largest));
}

inline std::uint8_t fp8FromFloat(float value, spec::DType dtype) {
  return fp8FromFloat(value, dtype == spec::DType::F8E5M2 ? kE5m2 : kE4m3);
}

} // namespace deft::exec
