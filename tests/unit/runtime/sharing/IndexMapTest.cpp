#include "runtime/sharing/IndexMap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace deft::sharing {
namespace {

TEST(IndexMapTest, IsWhatAMapIs) {
  std::mt19937_64 random(3);
  std::map<std::uint64_t, int> plain;
  IndexMap map;
  EXPECT_EQ(map.find(0), -1);
  for (int i = 0; i < 200'000; ++i) {
    // Few keys, so that they come and go again and again; neighbours in either half, as nodes and pages are.
    const std::uint64_t key = random() % 40 << 32 | random() % 40;
    if (const auto found = plain.find(key); found != plain.end() && random() % 2) {
      map.erase(key);
      plain.erase(found);
    } else {
      map.set(key, i);
      plain[key] = i;
    }
    const std::uint64_t other = random() % 40 << 32 | random() % 40;
    ASSERT_EQ(map.find(other), plain.count(other) ? plain[other] : -1);
    ASSERT_EQ(map.size(), plain.size());
  }
  for (const auto &[key, value] : plain)
    ASSERT_EQ(map.find(key), value);
  map.clear();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find(plain.begin()->first), -1);
}

TEST(IndexMapTest, AnyKeyIsOne) {
  IndexMap map;
  for (const std::uint64_t key : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63})
    map.set(key, 7);
  map.erase(0);
  EXPECT_EQ(map.find(0), -1);
  EXPECT_EQ(map.find(~std::uint64_t{0}), 7);
  EXPECT_EQ(map.find(std::uint64_t{1} << 63), 7);
}

} // namespace
} // namespace deft::sharing
