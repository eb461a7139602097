#include "runtime/exec/Half.h"

#include <gtest/gtest.h>

#include <limits>

namespace deft::exec {
namespace {

using spec::DType;

TEST(HalfTest, EveryPatternRoundTrips) {
  for (DType dtype : {DType::F16, DType::BF16})
    for (int bits = 0; bits < 65536; ++bits) {
      const float value = toFloat(static_cast<std::uint16_t>(bits), dtype);
      const std::uint16_t back = fromFloat(value, dtype);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(toFloat(back, dtype)));
      else
        EXPECT_EQ(back, bits);
    }
}

TEST(HalfTest, KnownValues) {
  EXPECT_EQ(floatFromF16(0x3c00), 1.f);
  EXPECT_EQ(floatFromF16(0xc000), -2.f);
  EXPECT_EQ(floatFromF16(0x7bff), 65504.f);
  EXPECT_EQ(floatFromF16(0x0001), 0x1p-24f);
  EXPECT_EQ(floatFromF16(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(floatFromBf16(0x3f80), 1.f);
  EXPECT_EQ(f16FromFloat(65519.f), 0x7bff);
  EXPECT_EQ(f16FromFloat(65520.f), 0x7c00);
  EXPECT_EQ(f16FromFloat(-0.f), 0x8000);
  EXPECT_EQ(bf16FromFloat(std::numeric_limits<float>::max()), 0x7f80);
}

/// Against the definition: of the two neighbours the nearer, of two equally near the even one.
TEST(HalfTest, RoundsToNearestEven) {
  for (DType dtype : {DType::F16, DType::BF16})
    for (int bits = 0; bits < (dtype == DType::F16 ? 0x7bff : 0x7f7f); ++bits) {
      const float low = toFloat(static_cast<std::uint16_t>(bits), dtype);
      const float high = toFloat(static_cast<std::uint16_t>(bits + 1), dtype);
      const double middle = (static_cast<double>(low) + high) / 2;
      const auto tie = static_cast<float>(middle);
      ASSERT_EQ(static_cast<double>(tie), middle);
      EXPECT_EQ(fromFloat(tie, dtype), bits + (bits & 1));
      EXPECT_EQ(fromFloat(std::nextafter(tie, low), dtype), bits);
      EXPECT_EQ(fromFloat(std::nextafter(tie, high), dtype), bits + 1);
    }
}

} // namespace
} // namespace deft::exec
