#include "runtime/exec/Fp8.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace deft::exec {
namespace {

struct Format {
  std::string name;
  Fp8Format format;
  float (*read)(std::uint8_t);
  bool hasInfinity;
};
const std::vector<Format> kFormats = {{"e4m3", kE4m3, floatFromE4m3, false},
                                      {"e5m2", kE5m2, floatFromE5m2, true}};

/// By the definition, from a code's three fields.
float defined(const Format &f, int code) {
  const int mantissaBits = f.format.mantissaBits, exponentBits = 7 - mantissaBits;
  const int mantissa = code & ((1 << mantissaBits) - 1),
            exponent = code >> mantissaBits & ((1 << exponentBits) - 1);
  const bool isTop = exponent == (1 << exponentBits) - 1;
  double value = exponent == 0
                     ? std::ldexp(mantissa, 1 - f.format.bias - mantissaBits)
                     : std::ldexp((1 << mantissaBits) + mantissa, exponent - f.format.bias - mantissaBits);
  if (f.hasInfinity && isTop)
    value =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (!f.hasInfinity && (code & 0x7f) == 0x7f)
    value = std::numeric_limits<double>::quiet_NaN();
  return static_cast<float>(code & 0x80 ? -value : value);
}

TEST(Fp8Test, EveryCodeIsTheNumberOfItsDefinition) {
  for (const Format &f : kFormats)
    for (int code = 0; code < 256; ++code) {
      const float value = f.read(static_cast<std::uint8_t>(code)), expected = defined(f, code);
      SCOPED_TRACE(f.name + " " + std::to_string(code));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected));
      }
    }
}

TEST(Fp8Test, KnownValues) {
  EXPECT_EQ(floatFromE4m3(0x38), 1.f);
  EXPECT_EQ(floatFromE4m3(0x7e), 448.f);
  EXPECT_EQ(floatFromE4m3(0x01), 0x1p-9f);
  EXPECT_EQ(floatFromE5m2(0x3c), 1.f);
  EXPECT_EQ(floatFromE5m2(0x7b), 57344.f);
  EXPECT_EQ(floatFromE5m2(0xfc), -std::numeric_limits<float>::infinity());
}

TEST(Fp8Test, EveryFiniteCodeRoundTrips) {
  for (const Format &f : kFormats)
    for (int code = 0; code < 256; ++code)
      if (const float value = defined(f, code); std::isfinite(value)) {
        EXPECT_EQ(fp8FromFloat(value, f.format), code) << f.name;
      }
}

/// Against the definition: of the two neighbours the nearer, of two equally near the even one.
TEST(Fp8Test, RoundsToNearestEven) {
  for (const Format &f : kFormats)
    for (int code = 0; code < f.format.largest; ++code) {
      const float low = defined(f, code), high = defined(f, code + 1), middle = (low + high) / 2;
      SCOPED_TRACE(f.name + " " + std::to_string(code));
      EXPECT_EQ(fp8FromFloat(middle, f.format), code % 2 == 0 ? code : code + 1);
      EXPECT_EQ(fp8FromFloat(std::nextafterf(middle, 0), f.format), code);
      EXPECT_EQ(fp8FromFloat(std::nextafterf(middle, 1e9f), f.format), code + 1);
      EXPECT_EQ(fp8FromFloat(-std::nextafterf(middle, 1e9f), f.format), 0x80 | (code + 1));
    }
}

TEST(Fp8Test, WhatIsTooLargeBecomesTheLargest) {
  for (const Format &f : kFormats) {
    EXPECT_EQ(defined(f, f.format.largest), f.format.largestValue);
    for (const float value : {f.format.largestValue * 1.01f, 1e30f, std::numeric_limits<float>::infinity()}) {
      EXPECT_EQ(fp8FromFloat(value, f.format), f.format.largest);
      EXPECT_EQ(fp8FromFloat(-value, f.format), 0x80 | f.format.largest);
    }
  }
}

TEST(Fp8Test, NaNStaysNaNAndZeroKeepsItsSign) {
  for (const Format &f : kFormats) {
    EXPECT_TRUE(std::isnan(f.read(fp8FromFloat(std::numeric_limits<float>::quiet_NaN(), f.format))));
    EXPECT_EQ(fp8FromFloat(-0.f, f.format), 0x80);
    EXPECT_EQ(fp8FromFloat(0.f, f.format), 0);
  }
}

} // namespace
} // namespace deft::exec
