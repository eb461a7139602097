#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/ptx/convert.cuh"
#include "tests/device/Words.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

namespace deft::test {

/// A token's row of a latent cache that may have scales in it, on the host.
template <class Config> struct ScaledRow {
  using Query = typename Config::Query;
  static constexpr int kValueDim = Config::kValueDim, kRopeDim = Config::kKeyDim - kValueDim;
  static constexpr int kEach = kHasScales<Config> ? kScaleColumnsOf<Config> : kValueDim; ///< columns
  static constexpr int kScaleBytes = kHasScales<Config> ? kValueDim / kEach * 4 : 0;
  static constexpr int kBytes = kValueDim + kScaleBytes + 2 * kRopeDim;

  /// Scales, and rotated columns in q's type, behind V's columns.
  static void fill(std::mt19937 &random, std::byte *row) {
    std::uniform_real_distribution<float> scales(0.5f, 1.5f), bits(-10.f, 0.f);
    std::normal_distribution<float> normal;
    for (int i = 0; i < kScaleBytes; i += 4) {
      float scale = scales(random);
      if constexpr (requires { Config::kHasUnlikeScales; })
        scale = std::exp2(bits(random));
      std::memcpy(row + kValueDim + i, &scale, sizeof scale);
    }
    for (int d = 0; d < kRopeDim; ++d) {
      const std::uint16_t bits = rounded(normal(random));
      std::memcpy(row + kValueDim + kScaleBytes + 2 * d, &bits, sizeof bits);
    }
  }

  /// A column of V as products take it: blocks that keep bytes round nothing.
  static double value(const std::byte *row, int column) {
    float scale = 0;
    std::memcpy(&scale, row + kValueDim + column / kEach * 4, sizeof scale);
    const auto bits = static_cast<std::uint8_t>(row[column]);
    const float value = static_cast<float>(ptx::toFloat<typename Config::Value>(bits)) * scale;
    if constexpr (requires { Config::kKeepsBytes; })
      return value;
    return ptx::toFloat<Query>(rounded(value));
  }
  /// Of the rotated columns, which begin at `rope`.
  static double rotated(const std::byte *rope, int column) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, rope + 2 * column, sizeof bits);
    return ptx::toFloat<Query>(bits);
  }

private:
  static std::uint16_t rounded(float value) {
    return static_cast<std::uint16_t>(ptx::pack2<Query>(value, 0.f));
  }
};

} // namespace deft::test
