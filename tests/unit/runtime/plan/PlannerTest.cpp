#include "tests/unit/runtime/plan/PlanTesting.h"

#include <array>
#include <cstring>
#include <ostream>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using tree::KvTree;

TEST(PlannerTest, ATreeWithoutQueriesHasNoItems) {
  const Plan plan = mustPlan(KvTree(), {}, makeConfig(0));
  EXPECT_TRUE(plan.items.empty());
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0));
  ASSERT_EQ(plan.phases.size(), 1u);
  EXPECT_EQ(plan.phases[0].itemCount, 0);
}

TEST(PlannerTest, SharedTokensAreReadOncePerTile) {
  const KvTree tree = test::levelTree({1, 4}, {100, 10}); // ratio 4: the four queries fill a tile of 16 rows
  const Plan plan = mustPlan(tree, {4, 1}, makeConfig(4096));
  ASSERT_EQ(plan.items.size(), 1u);
  EXPECT_EQ(plan.items[0].tokens, 140);
  EXPECT_EQ(plan.items[0].queryCount, 4);
  ASSERT_EQ(plan.items[0].runCount, 5);
  EXPECT_EQ(plan.runs[0].queryBegin, 0);
  EXPECT_EQ(plan.runs[0].queryEnd, 4);
  EXPECT_EQ(plan.runs[3].queryBegin, 2);
  EXPECT_EQ(plan.runs[3].queryEnd, 3);
  EXPECT_EQ(plan.runs[3].position, 100);
  EXPECT_EQ(plan.runs[3].begin, 120);
}

/// 256 leaves of 16 rows each: tiles of 128 rows would keep 32 blocks at work.
TEST(PlannerTest, UnionTilesAreNarrowerWhereMostBlocksWouldHaveNone) {
  const KvTree tree = placed(test::levelTree({1, 256}, {256, 32}));
  config::Config config = makeConfig(0, {128});
  config.phases[0].family = config::Family::Sm90;
  config.phases[0].warps = 12;
  const VariantFacts facts{16, 1};
  const Plan few = mustVerify(tree, facts, config, 32);
  EXPECT_EQ(few.items.size(), 32u);
  const Plan many = mustVerify(tree, facts, config, 132);
  EXPECT_EQ(many.items.size(), 64u);
  EXPECT_EQ(many.partialSlots, 0);
  CostModel model;
  model.set(facts, config, 132);
  EXPECT_LT(model.estimate(many).microseconds, 0.9 * model.estimate(few).microseconds);
  // Of few tokens, where it would save next to nothing, they stay wide.
  EXPECT_EQ(mustVerify(placed(test::levelTree({1, 64}, {16, 1})), facts, config, 132).items.size(), 8u);
}

TEST(PlannerTest, OneChunkWritesTheOutputDirectly) {
  const Plan plan = mustPlan(test::levelTree({1, 4}, {100, 10}), {4, 1}, makeConfig(144));
  EXPECT_EQ(plan.items[0].partialBegin, -1);
  EXPECT_EQ(plan.partialSlots, 0);
  EXPECT_TRUE(plan.mergeQuery.empty());
}

TEST(PlannerTest, SeveralChunksGoThroughTheMergeInPathOrder) {
  const Plan plan = mustPlan(test::levelTree({1}, {100}), {4, 1}, makeConfig(48));
  ASSERT_EQ(plan.items.size(), 3u); // 48 + 48 + 4: even parts of a third, rounded to the step
  EXPECT_EQ(plan.items[0].tokens, 48);
  EXPECT_EQ(plan.items[2].tokens, 4);
  EXPECT_EQ(plan.partialSlots, 3);
  EXPECT_THAT(plan.mergeQuery, ElementsAre(0));
  EXPECT_THAT(plan.mergeSlot, ElementsAre(0, 1, 2));
}

TEST(PlannerTest, AnItemIsNarrowedToTheQueriesThatSeeIt) {
  // 64 shared tokens, then two leaves of 64: the chunks of the leaves serve one query each.
  const Plan plan = mustPlan(test::levelTree({1, 2}, {64, 64}), {4, 1}, makeConfig(64));
  ASSERT_EQ(plan.items.size(), 3u);
  EXPECT_EQ(plan.items[0].queryCount, 2);
  EXPECT_EQ(plan.items[1].queryCount, 1);
  EXPECT_EQ(plan.items[2].queryBegin, 1);
  EXPECT_EQ(plan.partialSlots, 4);
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0, 2, 4));
}

TEST(PlannerTest, AQueryEndingInsideANodeCutsIt) {
  KvTree tree;
  (void)tree.addNode(-1, 100);
  (void)tree.addQuery(0, 30);
  (void)tree.addQuery(0);
  const Plan plan = mustPlan(tree, {1, 1}, makeConfig(4096));
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].tokens, 30);
  EXPECT_EQ(plan.runs[0].queryBegin, 0);
  EXPECT_EQ(plan.runs[1].tokens, 70);
  EXPECT_EQ(plan.runs[1].queryBegin, 1);
  EXPECT_THAT(plan.queryPos, ElementsAre(29, 99));
}

TEST(PlannerTest, AQueryWithoutTokensIsMergedFromNothing) {
  KvTree tree;
  (void)tree.addNode(-1, 0);
  (void)tree.addQuery(0);
  const Plan plan = mustPlan(tree, {1, 1}, makeConfig(0));
  EXPECT_TRUE(plan.items.empty());
  EXPECT_THAT(plan.mergeQuery, ElementsAre(0));
  EXPECT_THAT(plan.mergeBegin, ElementsAre(0, 0));
  EXPECT_THAT(plan.queryPos, ElementsAre(-1));
}

TEST(PlannerTest, PhasesTakeItemsByTheirRows) {
  // The shared chunks have 16 * 4 rows, those of the leaves 4.
  const Plan plan = mustPlan(test::levelTree({1, 16}, {6400, 320}), {4, 1}, makeConfig(320, {64, 16}));
  ASSERT_EQ(plan.phases.size(), 2u);
  EXPECT_EQ(plan.phases[0].itemCount, 20);
  EXPECT_EQ(plan.phases[1].itemCount, 16);
}

TEST(PlannerTest, APhaseNeverTakesMoreRowsThanItsTile) {
  config::Config config = makeConfig(4096, {64, 16});
  config.phases[0].rowsAbove = 40; // the narrow phase's tile of 16 cannot serve 17 to 40 rows
  const KvTree tree = test::levelTree({1, 8}, {100, 4});
  const VariantFacts facts{4, 1};
  const Plan plan = mustPlan(tree, facts, config);
  const auto verified = verify(plan, tree, facts, config);
  EXPECT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(plan.phases[0].itemCount, static_cast<int>(plan.items.size()));
}

TEST(PlannerTest, RequestsThatShareNothingDoNotShareATile) {
  const Plan plan = mustPlan(test::levelTree({8}, {1000}), {1, 8}, makeConfig(0), 16);
  EXPECT_EQ(plan.items.size(), 8u);
  for (const abi::Item &item : plan.items)
    EXPECT_EQ(item.queryCount, 1);
}

TEST(PlannerTest, AnOpenChunkFillsTheMachineAndNoMore) {
  const KvTree lonely = test::levelTree({1}, {32768});
  const VariantFacts facts{4, 8};
  const std::size_t items = mustPlan(lonely, facts, makeConfig(0), 132).items.size();
  EXPECT_GE(items * 8, 120u); // nearly a full wave at least, no more than a few
  EXPECT_LE(items * 8, 4 * 132u);
  const KvTree many = test::levelTree({256}, {1024}); // 2048 units of work without any cut
  EXPECT_EQ(mustPlan(many, facts, makeConfig(0), 132).partialSlots, 0);
}

TEST(PlannerTest, EveryOtherItemIsReadFromItsLeaves) {
  const KvTree tree = test::levelTree({1, 2, 4}, {100, 40, 10}); // a tile for each half
  config::Config config = makeConfig(0, {16});
  const Plan rooted = mustVerify(tree, {8, 8}, config, 1);
  config.order = config::Order::Alternate;
  const Plan turned = mustVerify(tree, {8, 8}, config, 1);
  ASSERT_EQ(turned.items.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const abi::Item &item = turned.items[i];
    EXPECT_EQ(0, std::memcmp(&item, &rooted.items[i], sizeof item));
    ASSERT_EQ(item.runCount, 4); // root, branch, two leaves
    int begin = 0;
    for (int r = 0; r < 4; ++r) {
      const abi::Run &run = turned.runs[item.runBegin + r];
      const abi::Run &like = rooted.runs[item.runBegin + (i == 0 ? r : 3 - r)];
      EXPECT_EQ(run.location, like.location);
      EXPECT_EQ(run.queryBegin, like.queryBegin);
      EXPECT_EQ(run.tokens, like.tokens);
      EXPECT_EQ(run.begin, begin);
      begin += run.tokens;
    }
  }
}

/// A plan of one item that reads tokens in turn.
Plan mixedPlan(const KvTree &tree, int ratio, int rows) {
  config::Config config = makeConfig(0, {rows});
  config.order = config::Order::Mixed;
  Plan plan = mustVerify(tree, {ratio, 1}, config, 1);
  EXPECT_EQ(plan.items.size(), 1U);
  return plan;
}

/// What a run has of an item.
struct Stretch {
  bool isOfFew;
  int begin, tokens;
  bool operator==(const Stretch &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Stretch &one) {
  return out << (one.isOfFew ? "few " : "many ") << one.begin << "+" << one.tokens;
}

TEST(PlannerTest, TokensOfManyRowsAndOfFewAreReadInTurn) {
  // One item of 32 rows: 250 tokens that all see, and two leaves of 50 tokens that 16 rows each see.
  const KvTree tree = placed(test::levelTree({1, 2}, {250, 50}));
  const Plan plan = mixedPlan(tree, 16, 32);
  std::vector<Stretch> stretches;
  int ofRoot = 0;
  for (const abi::Run &run : plan.runs) {
    const bool isOfFew = run.queryEnd - run.queryBegin == 1;
    stretches.push_back({isOfFew, run.begin, run.tokens});
    if (!isOfFew) { // those of one node stay in their order
      EXPECT_EQ(run.position, ofRoot);
      ofRoot += run.tokens;
    }
  }
  // Tiles of 64 tokens, each of one kind until the few run out; what is left of the last one's tile is the
  // root's.
  EXPECT_THAT(stretches,
              ElementsAre(Stretch{false, 0, 64}, Stretch{true, 64, 50}, Stretch{true, 114, 14},
                          Stretch{false, 128, 128}, Stretch{true, 256, 36}, Stretch{false, 292, 58}));
}

TEST(PlannerTest, TokensOfFewRowsAreThoseOfOneWarp) {
  // Queries of 12 rows each below a root that all see: rows 0 to 11, 12 to 23, 24 to 35, 36 to 47.
  const KvTree tree = placed(test::levelTree({1, 4}, {100, 70}));
  const Plan plan = mixedPlan(tree, 12, 48);
  std::vector<int> queries; // the first that sees each run
  for (const abi::Run &run : plan.runs)
    queries.push_back(run.queryBegin);
  // Queries 1 and 2 lie across warps, so that many rows see 240 tokens and few 140: 64 of the root, 64 of
  // leaf 0, the root's others and 28 of leaf 1, what is left of leaf 0 and 58 of leaf 3, then leaves 1, 2
  // and 3.
  EXPECT_THAT(queries, ElementsAre(0, 0, 0, 1, 0, 3, 1, 2, 3));
}

/// A root of 128 tokens and a leaf of so many for each of four queries of 16 rows, a warp's; one item of
/// family sm90.
struct DealtPlan {
  KvTree tree;
  config::Config config = makeConfig(0, {64});
  VariantFacts facts{16, 1};
  Plan plan;

  explicit DealtPlan(const std::array<int, 4> &leaves) {
    (void)tree.addNode(-1, 128);
    for (const int tokens : leaves)
      EXPECT_TRUE(tree.addQuery(tree.addNode(0, tokens).value()));
    tree = placed(std::move(tree));
    config.order = config::Order::Mixed;
    config.phases[0].family = config::Family::Sm90;
    plan = mustVerify(tree, facts, config, 1);
    EXPECT_EQ(plan.items.size(), 1U);
  }

  using Is = std::array<int, 3>; ///< a run: its query, -1 where all see it; begin, tokens
  std::vector<Is> stretches() const {
    std::vector<Is> stretches;
    for (const abi::Run &run : plan.runs)
      stretches.push_back({run.queryEnd - run.queryBegin == 1 ? run.queryBegin : -1, run.begin, run.tokens});
    return stretches;
  }
  std::array<int, 4> dealtBegins() const {
    return {plan.runs[0].dealtBegin, plan.runs[1].dealtBegin, plan.runs[2].dealtBegin,
            plan.runs[3].dealtBegin};
  }
};

TEST(PlannerTest, TokensOfFewRowsAreDealtToTheWarpsOfSm90) {
  using Is = DealtPlan::Is;
  const DealtPlan dealt({40, 33, 48, 40});
  EXPECT_THAT(dealt.stretches(),
              ElementsAre(Is{-1, 0, 128}, Is{0, 128, 40}, Is{1, 168, 33}, Is{2, 201, 48}, Is{3, 249, 40}));
  EXPECT_EQ(dealt.plan.items[0].commonTokens, 128);
  EXPECT_EQ(dealt.plan.items[0].dealtTiles, 3);
  EXPECT_THAT(dealt.dealtBegins(), ElementsAre(1, 2, 3, 4));
}

TEST(PlannerTest, WhatAWarpHasBeyondTheOthersIsNotDealt) {
  using Is = DealtPlan::Is;
  const DealtPlan dealt({100, 40, 20, 70}); // three of the warps fill three groups
  EXPECT_THAT(dealt.stretches(), ElementsAre(Is{-1, 0, 128}, Is{0, 128, 52}, Is{3, 180, 22}, Is{0, 202, 48},
                                             Is{1, 250, 40}, Is{2, 290, 20}, Is{3, 310, 48}));
  EXPECT_EQ(dealt.plan.items[0].commonTokens, 202);
  EXPECT_EQ(dealt.plan.items[0].dealtTiles, 3);
  EXPECT_THAT(dealt.dealtBegins(), ElementsAre(3, 4, 5, 6));
}

TEST(PlannerTest, NothingIsDealtWhereAWarpHasNoTokens) {
  KvTree tree;
  (void)tree.addNode(-1, 128);
  for (int leaf = 0; leaf < 3; ++leaf)
    ASSERT_TRUE(tree.addQuery(tree.addNode(0, 40).value()));
  ASSERT_TRUE(tree.addQuery(0)); // the fourth warp's
  tree = placed(std::move(tree));
  config::Config config = makeConfig(0, {64});
  config.order = config::Order::Mixed;
  config.phases[0].family = config::Family::Sm90;
  const Plan plan = mustVerify(tree, {16, 1}, config, 1);
  for (const abi::Item &item : plan.items)
    EXPECT_EQ(item.dealtTiles, 0);
  EXPECT_GT(plan.runs.size(), 4U); // mixed in whole tiles
}

TEST(PlannerTest, LeavesGrowWhereTheyAreDealt) {
  DealtPlan dealt({100, 40, 20, 70});
  ASSERT_TRUE(dealt.tree.append(1, 5)); // whose end is not dealt
  ASSERT_TRUE(dealt.tree.append(2, 10));
  EXPECT_EQ(advance(dealt.tree, dealt.plan), Advance::Done);
  const auto verified = verify(dealt.plan, dealt.tree, dealt.facts, dealt.config);
  EXPECT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(dealt.plan.items[0].commonTokens, 207);
  EXPECT_EQ(dealt.plan.items[0].dealtTiles, 4); // 50 tokens of the second warp
}

/// What a run has of a cache, and where it stands in its item.
struct Piece {
  int location, begin, tokens;
  bool operator==(const Piece &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Piece &one) {
  return out << one.location << " at " << one.begin << "+" << one.tokens;
}

/// One item of all of a tree, for family sm90.
struct PagedPlan {
  config::Config config = makeConfig(0, {64});
  VariantFacts facts{16, 1};
  Plan plan;

  PagedPlan(const KvTree &tree, int pageSize, config::Order order = config::Order::FromRoot) {
    config.order = order;
    config.phases[0].family = config::Family::Sm90;
    facts.pageSize = pageSize;
    plan = mustVerify(tree, facts, config, 1);
    EXPECT_EQ(plan.items.size(), 1U);
  }
  std::vector<Piece> pieces() const {
    std::vector<Piece> pieces;
    for (const abi::Run &run : plan.runs)
      pieces.push_back({run.location, run.begin, run.tokens});
    return pieces;
  }
};

/// A root and two leaves at these places of the cache.
KvTree rootAndLeaves(const std::array<int, 3> &tokens, const std::array<int, 3> &locations) {
  KvTree tree;
  for (std::size_t i = 0; i < 3; ++i) {
    const int node = tree.addNode(i == 0 ? -1 : 0, tokens[i]).value();
    EXPECT_TRUE(tree.place(node, locations[i]));
    if (i > 0) {
      EXPECT_TRUE(tree.addQuery(node));
    }
  }
  return tree;
}

TEST(PlannerTest, WholePagesComeFirst) {
  const KvTree tree = rootAndLeaves({70, 40, 20}, {5, 200, 334});
  // Pages of 16: 16 to 63 of the root and 208 to 239 of the first leaf are whole ones, 336 to 351 of the
  // other. The first leaf's last one, behind which it grows, is left apart.
  const std::vector<Piece> rests{{5, 80, 11},    {64, 91, 11},  {200, 102, 8},
                                 {224, 110, 16}, {334, 126, 2}, {352, 128, 2}};
  const auto with = [&](std::vector<Piece> pieces) {
    pieces.insert(pieces.end(), rests.begin(), rests.end());
    return ElementsAreArray(pieces);
  };
  EXPECT_THAT(PagedPlan(tree, 16).pieces(), with({{16, 0, 48}, {208, 48, 16}, {336, 64, 16}}));
  EXPECT_THAT(PagedPlan(tree, 48).pieces(), with({{16, 0, 48}, {208, 48, 16}, {336, 64, 16}}));
  EXPECT_THAT(PagedPlan(tree, 32).pieces(), with({{32, 0, 32}, {16, 32, 16}, {208, 48, 16}, {336, 64, 16}}));
  // No copy engine takes 16 tokens of these at a time.
  EXPECT_THAT(PagedPlan(tree, 24).pieces(),
              ElementsAre(Piece{5, 0, 70}, Piece{200, 70, 40}, Piece{334, 110, 20}));
}

TEST(PlannerTest, OfLargePagesWholeTilesComeFirstAndThenGroups) {
  const KvTree tree = rootAndLeaves({200, 40, 20}, {50, 320, 3});
  EXPECT_THAT(PagedPlan(tree, 64).pieces(),
              ElementsAre(Piece{64, 0, 128}, Piece{192, 128, 48}, Piece{320, 176, 32}, Piece{50, 208, 14},
                          Piece{240, 222, 10}, Piece{352, 232, 8}, Piece{3, 240, 20}));
}

TEST(PlannerTest, PagesThatAreInTheirPlaceStayThere) {
  const KvTree tree = rootAndLeaves({64, 5, 43}, {16, 160, 325});
  const PagedPlan paged(tree, 16);
  EXPECT_THAT(paged.pieces(), ElementsAre(Piece{16, 0, 64}, Piece{160, 64, 5}, Piece{325, 69, 43}));
  EXPECT_EQ(paged.plan.mostRuns, 9); // where nodes end elsewhere
}

TEST(PlannerTest, WholePagesAreDealtToo) {
  // A warp for each of four leaves, of which 208 to 239, 304 to 335, 400 to 431 and 512 to 527 are whole
  // pages. Behind 239 and 527 the leaves grow, so these pages are left apart.
  KvTree tree;
  for (const auto &[tokens, location] : {std::pair{64, 16}, {40, 200}, {40, 300}, {45, 400}, {30, 498}}) {
    const int node = tree.addNode(tree.nodes().empty() ? -1 : 0, tokens).value();
    ASSERT_TRUE(tree.place(node, location));
    if (node > 0) {
      ASSERT_TRUE(tree.addQuery(node));
    }
  }
  EXPECT_THAT(PagedPlan(tree, 16, config::Order::Mixed).pieces(),
              ElementsAre(Piece{16, 0, 64},                                          //
                          Piece{208, 64, 16}, Piece{200, 80, 8}, Piece{224, 88, 16}, //
                          Piece{304, 104, 32}, Piece{300, 136, 4}, Piece{336, 140, 4}, Piece{400, 144, 32},
                          Piece{432, 176, 13}, Piece{498, 189, 30}));
}

TEST(PlannerTest, LeavesGrowBehindTheirWholePages) {
  KvTree tree = rootAndLeaves({70, 40, 20}, {5, 200, 334});
  PagedPlan paged(tree, 16);
  ASSERT_TRUE(tree.append(1, 3)); // was up to the end of a page, which is left apart for that
  ASSERT_TRUE(tree.append(2, 5));
  EXPECT_EQ(advance(tree, paged.plan), Advance::Done);
  const auto verified = verify(paged.plan, tree, paged.facts, paged.config);
  EXPECT_TRUE(verified) << verified.error().message;
  EXPECT_THAT(paged.pieces(), ElementsAre(Piece{16, 0, 48}, Piece{208, 48, 16}, Piece{336, 64, 16},
                                          Piece{5, 80, 11}, Piece{64, 91, 11}, Piece{200, 102, 8},
                                          Piece{224, 110, 19}, Piece{334, 129, 2}, Piece{352, 131, 7}));
}

TEST(PlannerTest, ItemsOfOneKindStayAsTheyAreBesideMixedOnes) {
  KvTree tree = test::levelTree({1, 2}, {250, 50});
  const int alone = tree.addNode(-1, 100).value();
  ASSERT_TRUE(tree.addQuery(alone));
  tree = placed(std::move(tree));
  config::Config config = makeConfig(0, {32});
  config.order = config::Order::Mixed;
  Plan plan = mustVerify(tree, {16, 1}, config, 2);
  ASSERT_EQ(plan.items.size(), 2U);
  EXPECT_EQ(plan.items[1].runCount, 1);
  ASSERT_TRUE(tree.append(alone, 5)); // whose leaf still grows
  EXPECT_EQ(advance(tree, plan), Advance::Done);
  const auto verified = verify(plan, tree, {16, 1}, config);
  EXPECT_TRUE(verified) << verified.error().message;
  ASSERT_TRUE(tree.append(1, 1));
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
}

TEST(PlannerTest, TheSameArgumentsGiveTheSamePlan) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const KvTree tree = test::randomForest(seed, {300, 300, 500});
    const Plan a = mustPlan(tree, {4, 8}, makeConfig(0, {64, 16}));
    Planner planner; // reads the tree in a step of its own, and has read another one before
    planner.read(test::randomForest(seed + 100, {300, 300, 500}));
    planner.read(tree);
    Plan b;
    ASSERT_TRUE(planner.makeOfRead(tree, {4, 8}, makeConfig(0, {64, 16}), 132, b));
    EXPECT_EQ(a.callerIndex, b.callerIndex);
    ASSERT_EQ(a.leaves.size(), b.leaves.size());
    EXPECT_EQ(0, std::memcmp(a.leaves.data(), b.leaves.data(), a.leaves.size() * sizeof(Plan::Leaf)));
    ASSERT_EQ(a.items.size(), b.items.size());
    EXPECT_EQ(0, std::memcmp(a.items.data(), b.items.data(), a.items.size() * sizeof(abi::Item)));
    ASSERT_EQ(a.runs.size(), b.runs.size());
    EXPECT_EQ(0, std::memcmp(a.runs.data(), b.runs.data(), a.runs.size() * sizeof(abi::Run)));
    EXPECT_EQ(a.mergeSlot, b.mergeSlot);
  }
}

/// Quadratic planning would take minutes here.
TEST(PlannerTest, DeepChainsOfEmptyNodesCostNothingPerTile) {
  KvTree tree;
  int last = tree.addNode(-1, 1).value();
  for (int i = 0; i < 200000; ++i)
    last = tree.addNode(last, 0).value();
  for (int i = 0; i < 200000; ++i)
    (void)tree.addQuery(last);
  const Plan plan = mustPlan(tree, {16, 1}, makeConfig(0));
  EXPECT_EQ(plan.items.size(), 200000u);
}

/// Every number of a run stays an int: only elements need more bits.
TEST(PlannerTest, NodesAtTheFarEndOfTheTable) {
  constexpr int kMost = tree::KvTree::kMaxTokens;
  KvTree tree;
  const int root = tree.addNode(-1, kMost - 1000, 0).value();
  const int leaf = tree.addNode(root, 1000, kMost - 1000).value();
  (void)tree.addQuery(leaf);
  for (const spec::Partition partition :
       {spec::Partition::Query, spec::Partition::Node, spec::Partition::NodeChunk, spec::Partition::Flatten,
        spec::Partition::Cascade, spec::Partition::Union}) {
    const Plan plan = mustVerify(tree, {1, 1}, makeConfig(kMost / 4, {16}, partition));
    EXPECT_EQ(plan.queryPos[0], kMost - 1);
    EXPECT_LE(plan.items[0].tokens, kMost / 4);
  }
  (void)mustVerify(tree, {1, 8}, makeConfig(0, {16}), 132);
}

TEST(PlannerTest, ErrorsSayWhatDoesNotFit) {
  EXPECT_EQ(makePlan(KvTree(), {32, 1}, makeConfig(0, {16}), 1).error().message,
            "the largest tile_q is 16 rows, one query has 32");
  EXPECT_FALSE(makePlan(KvTree(), {1, 1}, makeConfig(-1), 1));
}

TEST(PlannerTest, SummaryCountsWhatIsRead) {
  const PlanSummary summary =
      summarize(mustPlan(test::levelTree({1, 2}, {64, 64}), {4, 1}, makeConfig(64)), {4, 1});
  EXPECT_EQ(summary.items, 3);
  EXPECT_EQ(summary.directItems, 0);
  EXPECT_EQ(summary.itemTokens, 192);
  EXPECT_EQ(summary.rowTokens, 4 * (2 * 64 + 64 + 64));
  EXPECT_EQ(summary.mergedQueries, 2);
}

} // namespace
} // namespace deft::plan
