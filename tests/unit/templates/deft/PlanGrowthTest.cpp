#include "tests/device/Words.h"

#include "deft/plan_growth.cuh"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deft {
namespace {

/// A plan with its growth tables, made without a planner: items of up to 80 runs, some of which end with a
/// leaf, and some of whose tokens are dealt.
struct TestPlan {
  std::vector<abi::Item> items;
  std::vector<abi::Run> runs;
  std::vector<int> queryPos, growingItems, lengths;
  std::vector<abi::GrowingLeaf> leaves;
  std::vector<abi::Grown> grownRuns, grownQueries;
  unsigned long long unserved = 0;

  explicit TestPlan(std::mt19937 &random) {
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    for (int i = 1 + below(9); i > 0; --i) {
      abi::Item item{};
      item.runBegin = static_cast<int>(runs.size());
      item.runCount = std::array{1, 4, 31, 32, 33, 80}[random() % 6];
      const bool isDealt = item.runCount > 8 && random() % 2 == 0;
      for (int r = 0; r < item.runCount; ++r) {
        const int tokens = 1 + below(40);
        abi::Run run{item.tokens, tokens, below(1000), below(1000), 0, 0, 1, 0, 0};
        if (isDealt && r < 4)
          run.dealtBegin = item.runCount / 5 * (r + 1);
        runs.push_back(run);
        grownRuns.push_back({-1, tokens});
        item.tokens += tokens;
        if (random() % 3 == 0) {
          grownRuns.back().leaf = static_cast<int>(leaves.size());
          const int length = 100 + below(100), mostGain = below(3) * 17;
          // Of trees over ranks some have a bit for each token that they may gain, of which there are fewer.
          const bool isOverRanks = below(3) == 0;
          leaves.push_back(
              {below(20), length, isOverRanks ? below(32) : mostGain, isOverRanks ? below(1 << 30) : 0});
          grownQueries.push_back({grownRuns.back().leaf, length - 1});
        }
      }
      item.dealtTiles = isDealt ? 1 : 0;
      if (random() % 4 != 0)
        growingItems.push_back(static_cast<int>(items.size()));
      items.push_back(item);
    }
    growingItems.resize(growingItems.size() + 3, -1);
    grownQueries.push_back({-1, 7});
    queryPos.assign(grownQueries.size(), 7);
    for (int request = 0; request < 20; ++request)
      lengths.push_back(100 + below(140));
  }

  void grow(unsigned seed) {
    const abi::GrowArgs args{lengths.data(),
                             leaves.data(),
                             growingItems.data(),
                             grownRuns.data(),
                             grownQueries.data(),
                             items.data(),
                             runs.data(),
                             queryPos.data(),
                             static_cast<int>(growingItems.size()),
                             static_cast<int>(grownQueries.size()),
                             &unserved};
    const unsigned threads = PlanGrowth::kThreads;
    const unsigned needed =
        std::max(32 * static_cast<unsigned>(growingItems.size()), static_cast<unsigned>(grownQueries.size()));
    const unsigned blocks = (needed + threads - 1) / threads;
    for (unsigned block = 0; block < blocks; ++block)
      EXPECT_EQ(test::runBlock({.threads = threads, .block = block, .blocks = blocks, .seed = seed},
                               [&] { PlanGrowth(args).grow(); }),
                "");
  }

  int gain(int leaf) const {
    if (leaf < 0)
      return 0;
    const abi::GrowingLeaf &own = leaves[static_cast<std::size_t>(leaf)];
    return std::clamp(lengths[static_cast<std::size_t>(own.request)] - own.length, 0, own.mostGain);
  }
  /// Of the leaf's run.
  int heldGain(int leaf) const {
    const int all = gain(leaf), held = leaf < 0 ? 0 : leaves[static_cast<std::size_t>(leaf)].reserved;
    int own = 0;
    for (int i = 0; i < all; ++i)
      own += held == 0 || (held >> i & 1) != 0 ? 1 : 0;
    return own;
  }
};

TEST(PlanGrowthTest, LeavesGrowAndWhatIsBehindThemBeginsLater) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    TestPlan plan(random);
    const TestPlan before = plan;
    plan.grow(seed);
    plan.grow(seed + 1); // it begins with what was planned each time
    std::vector<bool> grows(plan.items.size());
    for (const int item : plan.growingItems)
      if (item >= 0)
        grows[static_cast<std::size_t>(item)] = true;
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
      const abi::Item &item = plan.items[i];
      int tokens = 0;
      for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const int own = before.runs[at].tokens + (grows[i] ? before.heldGain(before.grownRuns[at].leaf) : 0);
        EXPECT_EQ(plan.runs[at].begin, tokens);
        EXPECT_EQ(plan.runs[at].tokens, own);
        EXPECT_EQ(plan.runs[at].location, before.runs[at].location);
        tokens += own;
      }
      EXPECT_EQ(item.tokens, tokens);
      if (item.dealtTiles == 0 || !grows[i])
        continue;
      const abi::Run *const runs = plan.runs.data() + item.runBegin;
      int most = 0;
      for (int warp = 0; warp < 4; ++warp)
        most = std::max(most, (warp < 3 ? runs[runs[warp + 1].dealtBegin].begin : tokens) -
                                  runs[runs[warp].dealtBegin].begin);
      EXPECT_EQ(item.commonTokens, runs[runs[0].dealtBegin].begin);
      EXPECT_EQ(item.dealtTiles, (most + 15) / 16);
    }
    bool isUnserved = false;
    for (std::size_t q = 0; q < plan.queryPos.size(); ++q) {
      const abi::Grown &query = plan.grownQueries[q];
      EXPECT_EQ(plan.queryPos[q], query.leaf < 0 ? 7 : query.planned + before.gain(query.leaf));
      if (query.leaf < 0)
        continue;
      const abi::GrowingLeaf &leaf = plan.leaves[static_cast<std::size_t>(query.leaf)];
      const int length = plan.lengths[static_cast<std::size_t>(leaf.request)];
      isUnserved |= length < leaf.length || length > leaf.length + leaf.mostGain;
    }
    EXPECT_EQ(plan.unserved != 0, isUnserved);
    if (isUnserved) {
      const auto request = static_cast<std::size_t>((plan.unserved & 0xffffffff) - 1);
      EXPECT_EQ(plan.unserved >> 32, static_cast<unsigned long long>(plan.lengths[request]));
    }
  }
}

} // namespace
} // namespace deft
