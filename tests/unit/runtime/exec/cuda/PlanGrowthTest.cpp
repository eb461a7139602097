#include "runtime/exec/cuda/PlanGrowth.h"

#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "tests/support/FakeKernels.h"
#include "tests/support/Masks.h"
#include "tests/support/RankLayouts.h"
#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace deft::exec {
namespace {

using ::testing::HasSubstr;

/// A plan as it lies on a device.
struct OnDevice {
  PlanRoom room;
  PlanSections sections;
  std::vector<std::byte> memory;

  explicit OnDevice(const plan::Plan &plan) : room(PlanRoom::of(plan)) {
    room.growsOnDevice = true;
    sections = PlanSections::of(room);
    memory.resize(sections.end);
    FilledCounts filled = FilledCounts::all(room);
    writeSections(plan, room, sections, memory.data(), filled);
  }

  template <typename T> T *at(std::size_t section) { return reinterpret_cast<T *>(memory.data() + section); }

  unsigned long long follow(const std::vector<int> &lengths) {
    unsigned long long unserved = 0;
    abi::GrowArgs args{};
    args.lengths = lengths.data();
    args.leaves = at<const abi::GrowingLeaf>(sections.growingLeaves);
    args.growingItems = at<const int>(sections.growingItems);
    args.grownRuns = at<const abi::Grown>(sections.grownRuns);
    args.grownQueries = at<const abi::Grown>(sections.grownQueries);
    args.items = at<abi::Item>(sections.items);
    args.runs = at<abi::Run>(sections.runs);
    args.queryPos = at<int>(sections.queryPos);
    args.mostItems = room.allItems();
    args.mostQueries = room.queries;
    args.unserved = &unserved;
    fake_cuda::growPlan(args);
    return unserved;
  }
};

std::vector<int> lengthsOf(const plan::Plan &plan) {
  std::vector<int> lengths(plan.callerIndex.size());
  for (std::size_t q = 0; q < lengths.size(); ++q)
    lengths[static_cast<std::size_t>(plan.callerIndex[q])] = plan.queryPos[q] + 1;
  return lengths;
}

config::Config randomConfig(std::mt19937 &random) {
  config::Config config;
  config.chunkTokens = std::array{16, 48, 128, 0}[random() % 4];
  config.partition = std::array{spec::Partition::Union, spec::Partition::Node, spec::Partition::Flatten,
                                spec::Partition::Query, spec::Partition::Greedy}[random() % 5];
  config.order = random() % 2 == 0 ? config::Order::Mixed : config::Order::FromRoot;
  if (random() % 2 == 0)
    config.phases.push_back({.name = "wide", .rowsAbove = 16, .tileQ = 64});
  if (!config.phases.empty() || random() % 2 == 0)
    config.phases.push_back({.name = "narrow", .tileQ = 16});
  else // a light block, whose plans may deal tokens
    config.phases.push_back({"tiles", -1, config::Family::Sm90, 64, 64, 2, 8});
  return config;
}

/// A forest whose leaves have a query each, as a rule.
tree::KvTree randomTree(std::mt19937 &random) {
  tree::KvTree tree;
  int location = 0;
  const auto add = [&](int parent) {
    const int tokens = 1 + static_cast<int>(random() % 70);
    const int node = *tree.addNode(parent, tokens, location);
    location += tokens + 80; // room to grow
    return node;
  };
  for (int root = 0; root < 1 + static_cast<int>(random() % 3); ++root) {
    const int top = add(-1);
    for (int branch = 0; branch < static_cast<int>(random() % 4); ++branch) {
      const int middle = add(top);
      for (int leaf = 0; leaf < static_cast<int>(random() % 9); ++leaf)
        (void)tree.addQuery(add(middle));
      if (random() % 4 == 0)
        (void)tree.addQuery(middle);
    }
  }
  return tree;
}

/// A tree and a config by which items have 49 to 64 rows of 4 heads, whose tokens are dealt.
tree::KvTree dealtTree(std::mt19937 &random) {
  const auto some = [&](unsigned most) { return 1 + static_cast<int>(random() % most); };
  tree::KvTree tree = test::levelTree({1, 4, 32}, {some(200), some(80), some(60)});
  int location = 0;
  for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node) {
    (void)tree.place(node, location);
    location += tree.nodes()[static_cast<std::size_t>(node)].tokens + 80;
  }
  return tree;
}

config::Config dealingConfig() {
  config::Config config;
  config.chunkTokens = 0;
  config.partition = spec::Partition::Union;
  config.order = config::Order::Mixed;
  config.phases.push_back({"tiles", -1, config::Family::Sm90, 64, 64, 2, 8});
  return config;
}

// What the kernel makes of a plan and what advance() makes of it are the same bytes.
TEST(PlanGrowthTest, FollowsAsTheHostDoes) {
  std::mt19937 random(5);
  int grown = 0, dealt = 0, interleaved = 0;
  for (int round = 0; round < 400; ++round) {
    const bool deals = round % 4 == 0;
    tree::KvTree tree = deals ? dealtTree(random) : randomTree(random);
    const config::Config config = deals ? dealingConfig() : randomConfig(random);
    const plan::VariantFacts facts{.ratio = deals ? 4 : std::array{1, 3, 4}[random() % 3],
                                   .kvHeads = deals ? 1 : 2,
                                   .readsKvPos = false};
    if (round % 3 == 1) { // what one of several ranks has of it
      const int count = 1 + round % 4;
      tree.setRanks(test::randomRanks(tree, count, round % count, static_cast<std::uint64_t>(round)));
    }
    const auto made = plan::makePlan(tree, facts, config, deals ? 1 : 16);
    ASSERT_TRUE(made.ok()) << made.error().message;
    plan::Plan plan = *made;
    OnDevice device(plan);
    const GrowthTables tables = growthTables(plan, {.slack = 40, .pageSize = 16});
    for (const plan::Plan::Leaf &leaf : plan.leaves)
      interleaved += leaf.canGrow == 3 ? 1 : 0;
    writeGrowth(plan, tables, device.room, device.sections, device.memory.data());

    std::vector<int> lengths = lengthsOf(plan);
    for (const plan::Plan::Leaf &leaf : plan.leaves) {
      const int most = leaf.followBegin < leaf.followEnd
                           ? tables.leaves[static_cast<std::size_t>(leaf.followBegin)].mostGain
                           : 0;
      if (most == 0)
        continue;
      const int gain = static_cast<int>(random() % static_cast<unsigned>(most + 1));
      lengths[static_cast<std::size_t>(plan.callerIndex[static_cast<std::size_t>(leaf.followBegin)])] += gain;
      ASSERT_TRUE(gain == 0 || tree.append(leaf.node, gain).ok());
      grown += gain;
    }
    std::vector<int> farther = lengths; // what was followed before leaves no trace
    for (int &length : farther)
      length += 3;
    (void)device.follow(farther);
    EXPECT_EQ(device.follow(lengths), 0u);
    ASSERT_EQ(plan::advance(tree, plan), plan::Advance::Done);
    dealt += static_cast<int>(std::count_if(plan.items.begin(), plan.items.end(),
                                            [](const abi::Item &item) { return item.dealtTiles > 0; }));
    OnDevice expected(plan);
    const auto same = [&](std::size_t section, std::size_t bytes) {
      return std::memcmp(device.memory.data() + section, expected.memory.data() + section, bytes) == 0;
    };
    const std::size_t items = plan.items.size() * sizeof(abi::Item),
                      runs = plan.runs.size() * sizeof(abi::Run);
    ASSERT_TRUE(same(device.sections.items, items)) << "round " << round;
    ASSERT_TRUE(same(device.sections.runs, runs)) << "round " << round;
    ASSERT_TRUE(same(device.sections.queryPos, plan.queryPos.size() * sizeof(int))) << "round " << round;
  }
  EXPECT_GT(grown, 10'000);
  EXPECT_GT(dealt, 20) << "items";
  EXPECT_GT(interleaved, 50) << "leaves of which several ranks hold tokens";
}

// Of windows nothing is dropped there, whoever keeps them open; and of masks whose ends move no leaf grows.
TEST(PlanGrowthTest, UnderMasksEachQueryStillReadsWhatItSees) {
  std::mt19937 random(6);
  int grown = 0;
  for (unsigned round = 0; round < 600; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto facts = plan::VariantFacts::of(test::randomBands(round));
    const config::Config config = randomConfig(random);
    tree::KvTree tree = randomTree(random);
    const auto made = plan::makePlan(tree, facts, config, 16);
    ASSERT_TRUE(made.ok()) << made.error().message;
    plan::Plan plan = *made;
    OnDevice device(plan);
    const GrowthTables tables = growthTables(plan, {.slack = 40, .pageSize = 16});
    writeGrowth(plan, tables, device.room, device.sections, device.memory.data());
    std::vector<int> lengths = lengthsOf(plan);
    for (const plan::Plan::Leaf &leaf : plan.leaves) {
      const int most = leaf.followBegin < leaf.followEnd
                           ? tables.leaves[static_cast<std::size_t>(leaf.followBegin)].mostGain
                           : 0;
      const int gain = static_cast<int>(random() % static_cast<unsigned>(most + 1));
      if (gain == 0)
        continue;
      lengths[static_cast<std::size_t>(plan.callerIndex[static_cast<std::size_t>(leaf.followBegin)])] += gain;
      ASSERT_TRUE(tree.append(leaf.node, gain).ok());
      plan.grownTokens += gain;
      grown += gain;
    }
    EXPECT_EQ(device.follow(lengths), 0u);
    const auto take = [&](auto *to, std::size_t count, std::size_t section) {
      std::memcpy(to, device.memory.data() + section, count * sizeof *to);
    };
    for (int item = 0; item < static_cast<int>(plan.items.size()); ++item) {
      const auto at = static_cast<std::size_t>(itemOnDevice(plan, device.sections, item));
      take(&plan.items[static_cast<std::size_t>(item)], 1, device.sections.items + at * sizeof(abi::Item));
    }
    take(plan.runs.toChange().data(), plan.runs.size(), device.sections.runs);
    take(plan.queryPos.data(), plan.queryPos.size(), device.sections.queryPos);
    plan.countTable();
    plan.generation = tree.generation();
    const auto verified = plan::verify(plan, tree, facts, config);
    ASSERT_TRUE(verified.ok()) << verified.error().message;
  }
  EXPECT_GT(grown, 2'000);
}

TEST(PlanGrowthTest, ALeafGrowsForOneQuery) {
  tree::KvTree tree;
  const int root = *tree.addNode(-1, 32, 0), leaf = *tree.addNode(root, 10, 32),
            twice = *tree.addNode(root, 4, 64);
  (void)tree.addQuery(leaf);
  (void)tree.addQuery(twice);
  (void)tree.addQuery(twice);
  const auto plan = *plan::makePlan(tree, {.ratio = 1, .kvHeads = 1}, FakeGpu().kernels->config(), 8);
  const auto mostGain = [&](const GrowthRules &rules, int query) {
    for (const abi::GrowingLeaf &own : growthTables(plan, rules).leaves)
      if (own.request == query)
        return own.mostGain;
    return -1;
  };
  EXPECT_EQ(mostGain({.slack = 5, .pageSize = 16}, 0), 5);
  EXPECT_EQ(mostGain({.pageSize = 16}, 0), 16) << "six to the end of the page are fewer";
  EXPECT_EQ(mostGain({.pageSize = 64}, 0), 22);
  EXPECT_EQ(mostGain({.pageSize = 1}, 0), 16);
  EXPECT_EQ(mostGain({.pageSize = 0}, 0), 16);
  EXPECT_EQ(mostGain({.slack = 5}, 1), 0) << "whose page would it be?";
  EXPECT_EQ(mostGain({.slack = 5}, 2), 0);
}

// Plans are made for what a mask shows of so many tokens more (Plan::Impl::makeDrafted, findWindowStarts).
TEST(PlanGrowthTest, APageOfManyTokensGivesNoMoreThanPlansAreMadeFor) {
  const GrowthRules rules{.pageSize = 256};
  EXPECT_EQ(rules.slackAt(1), plan::Planner::kMostGrowth);
  EXPECT_EQ(rules.slackAt(256 - 20), 20);
  EXPECT_EQ(rules.slackAt(256), GrowthRules::kLeastSlack);
}

TEST(PlanGrowthTest, WhatIsNotServedIsNoticed) {
  tree::KvTree tree;
  const int root = *tree.addNode(-1, 32, 0);
  (void)tree.addQuery(*tree.addNode(root, 10, 32));
  const auto plan = *plan::makePlan(tree, {.ratio = 1, .kvHeads = 1}, FakeGpu().kernels->config(), 8);
  OnDevice device(plan);
  writeGrowth(plan, growthTables(plan, {.slack = 5}), device.room, device.sections, device.memory.data());
  EXPECT_EQ(device.follow({42}), 0u);
  EXPECT_EQ(device.follow({47}), 0u);
  EXPECT_EQ(device.follow({48}), 48ull << 32 | 1);
  EXPECT_EQ(device.follow({41}), 41ull << 32 | 1);
  EXPECT_EQ(*device.at<int>(device.sections.queryPos), 41) << "no shorter than what was planned";
}

// A query that ends inside a node, and those that end with the same one, cannot see more.
TEST(PlanGrowthTest, AnotherLengthOfAQueryThatCannotGrowIsNoticed) {
  tree::KvTree tree;
  const int root = *tree.addNode(-1, 32, 0), twice = *tree.addNode(root, 4, 32);
  (void)tree.addQuery(root, 20);
  (void)tree.addQuery(twice);
  (void)tree.addQuery(twice);
  const auto plan = *plan::makePlan(tree, {.ratio = 1, .kvHeads = 1}, FakeGpu().kernels->config(), 8);
  OnDevice device(plan);
  writeGrowth(plan, growthTables(plan, {.slack = 5}), device.room, device.sections, device.memory.data());
  EXPECT_EQ(device.follow({20, 36, 36}), 0u);
  EXPECT_EQ(device.follow({21, 36, 36}), 21ull << 32 | 1);
  EXPECT_EQ(device.follow({20, 37, 36}), 37ull << 32 | 2);
  EXPECT_EQ(device.follow({20, 36, 37}), 37ull << 32 | 3);
}

TEST(PlanGrowthTest, TheKernelCompilesForEveryTargetWithoutSpills) {
  expectCompilesEverywhere("deft_grow_plan.cu", PlanGrowth::source());
}

// The tests' driver does what the kernel does, which runs as it is in tests/unit/templates.
TEST(PlanGrowthTest, APlanOnTheDeviceFollowsThroughTheDriver) {
  const FakeGpu gpu;
  CudaPlanOptions options;
  options.growth = GrowthRules{.slack = 8, .pageSize = gpu.variant.cache.pageSize};
  auto made = CudaPlan::create(gpu.kernels, options);
  if (!made && made.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made.ok()) << made.error().message;
  CudaPlan &device = **made;
  const std::vector<int> lengths{42};
  const auto early = device.follow(lengths.data(), nullptr);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("no plan on the device"));
  tree::KvTree tree;
  (void)tree.addQuery(*tree.addNode(-1, 42, 0));
  ASSERT_TRUE(device.write(gpu.makePlan(tree)).ok());
  ASSERT_TRUE(device.upload(nullptr).ok());
  ASSERT_TRUE(device.follow(lengths.data(), nullptr).ok());
  EXPECT_TRUE(device.checkReplays().ok());
  const std::vector<int> tooLong{51};
  ASSERT_TRUE(device.follow(tooLong.data(), nullptr).ok());
  const auto noticed = device.checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, HasSubstr("query 0 saw 51 tokens"));
  EXPECT_TRUE(device.checkReplays().ok()) << "told once";

  const auto plain = gpu.makeDevicePlan({});
  const auto refused = plain->follow(lengths.data(), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("make it to follow"));
}

} // namespace
} // namespace deft::exec
