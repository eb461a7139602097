#include <deft/quantize.hpp>

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace deft {
namespace {

constexpr QuantizeShape kShape{.tokens = 2, .kvHeads = 2, .dim = 1};

TEST(QuantizeTest, WritesRowsOfACache) {
  const std::array<std::uint16_t, 4> rows = {0x3f80, 0x4000, 0x3f80, 0xc000}; // 1, 2, 1, -2 in bf16
  const std::array<float, 2> scales = {1, 2};
  std::array<std::uint8_t, 4> cache{};
  ASSERT_TRUE(quantize(kShape, rows.data(), scales, cache.data()).ok());
  EXPECT_EQ(cache, (std::array<std::uint8_t, 4>{0x38, 0x38, 0x38, 0xb8}));
}

TEST(QuantizeTest, ErrorsSayWhatIsWrong) {
  std::array<std::uint16_t, 4> rows{};
  const float one = 1;
  const auto errorOf = [&](QuantizeShape shape, std::span<const float> scales, const void *from) {
    const auto done = quantize(shape, from, scales, rows.data());
    return done.ok() ? "none" : done.error().message;
  };
  QuantizeShape wide = kShape;
  wide.to = DType::F16;
  EXPECT_EQ(errorOf(wide, {&one, 1}, rows.data()), "QuantizeShape::to is float16");
  QuantizeShape narrow = kShape;
  narrow.from = DType::F8E5M2;
  EXPECT_EQ(errorOf(narrow, {&one, 1}, rows.data()), "QuantizeShape::from is float8_e5m2");
  EXPECT_EQ(errorOf(kShape, {}, rows.data()), "0 scales, not 1, 2 or 4");
  EXPECT_EQ(errorOf(kShape, {&one, 1}, nullptr), "from is null");
  for (const float bad : {0.f, -1.f, std::numeric_limits<float>::infinity()})
    EXPECT_NE(errorOf(kShape, {&bad, 1}, rows.data()).find("not finite and above 0"), std::string::npos);
}

TEST(QuantizeTest, WhatIsWrittenIsNotWhatIsRead) {
  std::vector<std::uint16_t> memory(64);
  const float scale = 1;
  const QuantizeShape shape{.tokens = 2, .kvHeads = 1, .dim = 16, .from = DType::F16, .to = DType::F8E4M3};
  auto *const bytes = reinterpret_cast<std::uint8_t *>(memory.data());
  const auto refused = quantize(shape, memory.data(), {&scale, 1}, bytes + 63);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "to overlaps with from");
  EXPECT_FALSE(quantize(shape, memory.data() + 8, {&scale, 1}, bytes));
  EXPECT_TRUE(quantize(shape, memory.data(), {&scale, 1}, bytes + 64));
}

} // namespace
} // namespace deft
