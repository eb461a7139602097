#include "tests/unit/runtime/plan/PlanTesting.h"

#include <array>
#include <cstring>
#include <ostream>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using tree::KvTree;

TEST(OrderTest, EveryOtherItemIsReadFromItsLeaves) {
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

TEST(OrderTest, TokensOfManyRowsAndOfFewAreReadInTurn) {
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

/// 256 warps: of all of them the tokens of a leaf are few rows'.
TEST(OrderTest, ItemsMayHaveAnyNumberOfRows) {
  const KvTree tree = placed(test::levelTree({1, 256}, {4096, 16}));
  config::Config config = makeConfig(1 << 16, {4096});
  config.order = config::Order::Mixed;
  const Plan plan = mustVerify(tree, {16, 1}, config, 1);
  ASSERT_EQ(plan.items.size(), 1U);
  EXPECT_EQ(plan.items[0].runCount, 64 + 256); // four leaves in each other tile
}

TEST(OrderTest, TokensOfFewRowsAreThoseOfOneWarp) {
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

TEST(OrderTest, TokensOfFewRowsAreDealtToTheWarpsOfSm90) {
  using Is = DealtPlan::Is;
  const DealtPlan dealt({40, 33, 48, 40});
  EXPECT_THAT(dealt.stretches(),
              ElementsAre(Is{-1, 0, 128}, Is{0, 128, 40}, Is{1, 168, 33}, Is{2, 201, 48}, Is{3, 249, 40}));
  EXPECT_EQ(dealt.plan.items[0].commonTokens, 128);
  EXPECT_EQ(dealt.plan.items[0].dealtTiles, 3);
  EXPECT_THAT(dealt.dealtBegins(), ElementsAre(1, 2, 3, 4));
}

TEST(OrderTest, WhatAWarpHasBeyondTheOthersIsNotDealt) {
  using Is = DealtPlan::Is;
  const DealtPlan dealt({100, 40, 20, 70}); // three of the warps fill three groups
  EXPECT_THAT(dealt.stretches(), ElementsAre(Is{-1, 0, 128}, Is{0, 128, 52}, Is{3, 180, 22}, Is{0, 202, 48},
                                             Is{1, 250, 40}, Is{2, 290, 20}, Is{3, 310, 48}));
  EXPECT_EQ(dealt.plan.items[0].commonTokens, 202);
  EXPECT_EQ(dealt.plan.mostRuns, 5 + 4); // in the next step, perhaps, one of each warp is cut
  EXPECT_EQ(dealt.plan.items[0].dealtTiles, 3);
  EXPECT_THAT(dealt.dealtBegins(), ElementsAre(3, 4, 5, 6));
}

TEST(OrderTest, NothingIsDealtWhereAWarpHasNoTokens) {
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

/// 40 queries of 4 rows: two items of 64 rows, and one of 32.
TEST(OrderTest, AnItemOfTooFewRowsStaysAsItIsBesideDealtOnes) {
  KvTree tree = placed(test::levelTree({1, 40}, {1024, 37}));
  config::Config config = makeConfig(1 << 16, {64});
  config.order = config::Order::Mixed;
  config.phases[0].family = config::Family::Sm90;
  const VariantFacts facts{4, 8};
  Plan plan = mustVerify(tree, facts, config);
  ASSERT_EQ(plan.items.size(), 3U);
  EXPECT_GT(plan.items[0].dealtTiles, 0);
  EXPECT_GT(plan.items[1].dealtTiles, 0);
  EXPECT_EQ(plan.items[2].dealtTiles, 0);
  EXPECT_EQ(plan.items[2].runCount, 9);
  for (int leaf = 1; leaf <= 40; ++leaf)
    ASSERT_TRUE(tree.append(leaf, 1));
  EXPECT_EQ(advance(tree, plan), Advance::Done);
  const auto verified = verify(plan, tree, facts, config);
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST(OrderTest, LeavesGrowWhereTheyAreDealt) {
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

TEST(OrderTest, WholePagesComeFirst) {
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

TEST(OrderTest, OfLargePagesWholeTilesComeFirstAndThenGroups) {
  const KvTree tree = rootAndLeaves({200, 40, 20}, {50, 320, 3});
  EXPECT_THAT(PagedPlan(tree, 64).pieces(),
              ElementsAre(Piece{64, 0, 128}, Piece{192, 128, 48}, Piece{320, 176, 32}, Piece{50, 208, 14},
                          Piece{240, 222, 10}, Piece{352, 232, 8}, Piece{3, 240, 20}));
}

TEST(OrderTest, PagesThatAreInTheirPlaceStayThere) {
  const KvTree tree = rootAndLeaves({64, 5, 43}, {16, 160, 325});
  const PagedPlan paged(tree, 16);
  EXPECT_THAT(paged.pieces(), ElementsAre(Piece{16, 0, 64}, Piece{160, 64, 5}, Piece{325, 69, 43}));
  EXPECT_EQ(paged.plan.mostRuns, 9); // where nodes end elsewhere
}

TEST(OrderTest, WholePagesAreDealtToo) {
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

TEST(OrderTest, LeavesGrowBehindTheirWholePages) {
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

TEST(OrderTest, ItemsOfOneKindStayAsTheyAreBesideMixedOnes) {
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

} // namespace
} // namespace deft::plan
