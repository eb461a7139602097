#include "runtime/api/Overlap.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

namespace deft::api {
namespace {

Extent at(std::uintptr_t begin, const Sizes &shape, const Sizes &strides, std::int64_t elementBytes = 2) {
  return {begin, elementBytes, shape, strides};
}

void addBytes(const Extent &extent, std::size_t axis, std::int64_t offset, std::set<std::int64_t> &bytes) {
  if (axis == extent.shape.size()) {
    for (std::int64_t i = 0; i < extent.elementBytes; ++i)
      bytes.insert(static_cast<std::int64_t>(extent.begin) + offset * extent.elementBytes + i);
    return;
  }
  for (std::int64_t i = 0; i < extent.shape[axis]; ++i)
    addBytes(extent, axis + 1, offset + i * extent.strides[axis], bytes);
}

std::set<std::int64_t> bytesOf(const Extent &extent) {
  std::set<std::int64_t> bytes;
  addBytes(extent, 0, 0, bytes);
  return bytes;
}

TEST(OverlapTest, OneByteIsEnough) {
  const Extent rows = at(1000, {3, 4, 8}, {32, 8, 1}); // 192 bytes
  EXPECT_TRUE(overlap(rows, rows));
  EXPECT_TRUE(overlap(rows, at(1191, {1}, {1}, 1)));
  EXPECT_FALSE(overlap(rows, at(1192, {1}, {1}, 1)));
  EXPECT_TRUE(overlap(at(999, {2}, {1}, 1), rows));
  EXPECT_FALSE(overlap(at(998, {2}, {1}, 1), rows));
}

TEST(OverlapTest, HeadsOfOneRowDoNot) {
  const Extent q = at(1000, {5, 4, 64}, {8 * 64, 64, 1}), k = at(1000 + 4 * 128, {5, 2, 64}, {8 * 64, 64, 1});
  EXPECT_FALSE(overlap(q, k));
  EXPECT_FALSE(overlap(k, q));
  EXPECT_TRUE(overlap(q, at(1000 + 3 * 128, {5, 2, 64}, {8 * 64, 64, 1})));
  const Extent everyOther = at(1000, {50}, {2}), others = at(1002, {50}, {2});
  EXPECT_FALSE(overlap(everyOther, others));
  EXPECT_TRUE(overlap(everyOther, at(1001, {50}, {2})));
}

TEST(OverlapTest, WhatHasNoElementsOrNoAddressOverlapsWithNothing) {
  const Extent rows = at(1000, {3, 4}, {4, 1});
  EXPECT_FALSE(overlap(rows, at(1000, {0, 4}, {4, 1})));
  EXPECT_FALSE(overlap(at(1000, {3, 0}, {4, 1}), rows));
  EXPECT_FALSE(overlap(at(0, {3, 4}, {4, 1}), at(0, {3, 4}, {4, 1})));
}

TEST(OverlapTest, WhatNoMemoryHoldsIsAnotherChecksToName) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_FALSE(overlap(at(1000, {3, 4}, {kHuge, 1}), at(1000, {3, 4}, {4, 1})));
  EXPECT_FALSE(overlap(at(1000, {3, 4}, {4, 1}), at(1000, {kHuge, 4}, {4, 1})));
}

TEST(OverlapTest, StridesThatTakeLongAreTakenForAnOverlap) {
  // Sums of 2 * 10007 i - 2 * 10009 j, all even, and the other one's bytes at odd places.
  EXPECT_TRUE(overlap(at(1000, {100000}, {20014}, 1), at(1001, {100000}, {20018}, 1)));
}

TEST(OverlapTest, EntriesOfATensorShareNothing) {
  const auto dimension = [](const Sizes &shape, const Sizes &strides) {
    const auto found = overlapWithin(at(0, shape, strides)); // at any address, also none
    return found ? static_cast<int>(found->dimension) : -1;
  };
  EXPECT_EQ(dimension({4, 16, 80}, {16 * 80, 80, 1}), -1);
  EXPECT_EQ(dimension({4, 16, 80}, {16 * 80, 79, 1}), 1);
  EXPECT_EQ(dimension({4, 16, 80}, {16 * 80 - 1, 80, 1}), 0);
  EXPECT_EQ(dimension({4, 16, 80}, {80, 4 * 80, 1}), -1) << "slots outside, pages inside";
  EXPECT_EQ(dimension({5, 16, 80}, {80, 4 * 80, 1}), 1);
  EXPECT_EQ(dimension({4, 16, 80}, {0, 80, 1}), -1) << "one page again and again";
  EXPECT_EQ(dimension({4, 16, 80}, {0, 79, 1}), 1);
  EXPECT_EQ(dimension({4, 16, 80}, {16 * 80, 80, 0}), -1);
  EXPECT_EQ(dimension({3, 2}, {2, 3}), -1) << "elements 0, 2, 4 and 3, 5, 7";
  EXPECT_EQ(dimension({4, 2}, {2, 4}), 1) << "elements 0, 2, 4, 6 and 4, 6, 8, 10";
  EXPECT_EQ(dimension({4, 0, 80}, {1, 1, 1}), -1);
  EXPECT_EQ(overlapWithin(at(0, {4, 16, 80}, {16 * 80, 79, 1}))->span, 80);
  EXPECT_EQ(overlapWithin(at(0, {4, 16, 80}, {16 * 80 - 1, 80, 1}))->span, 16 * 80);
}

TEST(OverlapTest, ItIsWhatSetsOfBytesSay) {
  const unsigned seed = std::getenv("DEFT_TEST_SEED")
                            ? static_cast<unsigned>(std::strtoul(std::getenv("DEFT_TEST_SEED"), nullptr, 10))
                            : 20261128u;
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  const auto drawExtent = [&] {
    const auto begin = static_cast<std::uintptr_t>(draw(1000, 1060));
    const std::int64_t bytes = std::int64_t{1} << draw(0, 2);
    const auto dims = static_cast<std::size_t>(draw(1, 3));
    Sizes shape(dims, 0), strides(dims, 0);
    std::int64_t inner = draw(1, 2);
    for (std::size_t axis = dims; axis-- > 0;) {
      shape[axis] = draw(0, 20) == 0 ? 0 : draw(1, 4);
      strides[axis] = draw(0, 9) == 0 ? draw(0, 7) : inner;
      inner *= draw(1, 5);
    }
    return at(begin, shape, strides, bytes);
  };
  int found = 0;
  constexpr int kCases = 20000;
  for (int i = 0; i < kCases; ++i) {
    const Extent a = drawExtent(), b = drawExtent();
    bool share = false;
    const std::set<std::int64_t> bytes = bytesOf(a);
    for (const std::int64_t byte : bytesOf(b))
      share |= bytes.count(byte) > 0;
    ASSERT_EQ(overlap(a, b), share) << "seed " << seed << ", case " << i;
    found += share;
  }
  EXPECT_GT(found, kCases / 10);
  EXPECT_LT(found, kCases * 9 / 10);
  int within = 0;
  for (int i = 0; i < kCases; ++i) {
    const Extent extent = drawExtent();
    std::size_t bytes = static_cast<std::size_t>(extent.elementBytes);
    for (std::size_t axis = 0; axis < extent.shape.size(); ++axis)
      if (extent.shape[axis] == 0 || extent.strides[axis] != 0)
        bytes *= static_cast<std::size_t>(extent.shape[axis]);
    const bool share = bytesOf(extent).size() < bytes;
    ASSERT_EQ(overlapWithin(extent).has_value(), share) << "seed " << seed << ", tensor " << i;
    within += share;
  }
  EXPECT_GT(within, kCases / 10);
  EXPECT_LT(within, kCases * 9 / 10);
}

} // namespace
} // namespace deft::api
