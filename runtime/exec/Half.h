#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Fp8.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

/// Converts the floating-point types of tensors between bit patterns and f32 in host code, to nearest even.
/// An 8-bit pattern is stored in the lower byte.
namespace deft::exec {

inline float floatFromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t bf16FromFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) // NaN: keep the sign, make it quiet
    return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

inline float floatFromF16(std::uint16_t bits) {
  // Exponent and mantissa shifted into place are 2^112 too small, subnormals included; no branch, so
  // that loops over vectors of them vectorise.
  const float magnitude = std::bit_cast<float>((std::uint32_t{bits} & 0x7fffu) << 13) * 0x1p112f;
  const std::uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special |
                              (std::uint32_t{bits} & 0x8000u) << 16);
}

inline std::uint16_t f16FromFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t absolute = bits & 0x7fffffffu;
  if (absolute > 0x7f800000u)
    return sign | 0x7e00u; // NaN
  if (absolute >= 0x477ff000u)
    return sign | 0x7c00u;    // 65520 and more round to infinity
  if (absolute < 0x38800000u) // below 2^-14: units of 2^-24; rounding up into the normal range is right
    return sign | static_cast<std::uint16_t>(std::nearbyint(std::bit_cast<float>(absolute) * 0x1p24f));
  const std::uint32_t rebiased = absolute - (112u << 23);
  return sign | static_cast<std::uint16_t>((rebiased + 0xfffu + ((rebiased >> 13) & 1)) >> 13);
}

inline float toFloat(std::uint16_t bits, spec::DType dtype) {
  if (spec::elementBytes(dtype) == 1)
    return floatFromFp8(static_cast<std::uint8_t>(bits), dtype);
  return dtype == spec::DType::BF16 ? floatFromBf16(bits) : floatFromF16(bits);
}

inline std::uint16_t fromFloat(float value, spec::DType dtype) {
  if (spec::elementBytes(dtype) == 1)
    return fp8FromFloat(value, dtype);
  return dtype == spec::DType::BF16 ? bf16FromFloat(value) : f16FromFloat(value);
}

/// `value`, rounded to the dtype.
inline double roundTo(double value, spec::DType dtype) {
  return toFloat(fromFloat(static_cast<float>(value), dtype), dtype);
}

/// The bit pattern of element `at` of a tensor's memory.
inline std::uint16_t bitsAt(const void *memory, long long at, spec::DType dtype) {
  const int bytes = spec::elementBytes(dtype);
  std::uint16_t bits = 0; // the lower byte comes first
  std::memcpy(&bits, static_cast<const std::byte *>(memory) + at * bytes, static_cast<std::size_t>(bytes));
  return bits;
}
inline void setBitsAt(void *memory, long long at, spec::DType dtype, std::uint16_t bits) {
  const int bytes = spec::elementBytes(dtype);
  std::memcpy(static_cast<std::byte *>(memory) + at * bytes, &bits, static_cast<std::size_t>(bytes));
}

} // namespace deft::exec
