#include "tests/device/Words.h"

#include "deft/list_check.cuh"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace deft {
namespace {

TEST(ListCheckTest, EntriesThatAreNoSlotOfTheCacheAreTold) {
  int told = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    const int queries = 1 + below(5), budget = 1 + below(400), slots = 1 + below(1000);
    std::vector<int> lists(static_cast<std::size_t>(queries * budget));
    for (int &slot : lists)
      slot = below(slots + 1) - 1;
    int wrongQuery = -1, wrongSlot = 0;
    if (below(2) == 0) {
      const auto at = random() % lists.size();
      wrongQuery = static_cast<int>(at) / budget;
      lists[at] = wrongSlot = std::array{-2, slots, 1 << 30, -(1 << 30)}[random() % 4];
    }
    unsigned long long wrong = 0;
    const abi::ListCheckArgs args{lists.data(), budget, 0, slots, &wrong};
    for (int block = 0; block < queries; ++block)
      EXPECT_EQ(test::runBlock({.threads = ListCheck::kThreads,
                                .block = static_cast<unsigned>(block),
                                .blocks = static_cast<unsigned>(queries),
                                .seed = seed},
                               [&] { ListCheck(args).check(); }),
                "");
    ASSERT_EQ(wrong != 0, wrongQuery >= 0) << "seed " << seed;
    if (wrong == 0)
      continue;
    ++told;
    EXPECT_EQ(static_cast<int>(wrong & 0xffffffffu) - 1, wrongQuery) << "seed " << seed;
    EXPECT_EQ(static_cast<int>(wrong >> 32), wrongSlot) << "seed " << seed;
  }
  EXPECT_GT(told, 10);
}

} // namespace
} // namespace deft
