/// Plans under masks: what a query may see is read once, and what nobody sees is not read.

#include "runtime/plan/VisibleTree.h"

#include "tests/support/Masks.h"
#include "tests/support/UnseenPages.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>
#include <set>

namespace deft::plan {
namespace {

using tree::KvTree;

/// With room behind each node, so that leaves can grow.
KvTree spread(KvTree tree, int room) {
  int location = 3;
  for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node) {
    EXPECT_TRUE(tree.place(node, location));
    location += tree.nodes()[static_cast<std::size_t>(node)].tokens + room;
  }
  return tree;
}

/// Whether all that is read is in groups of which somebody sees something.
testing::AssertionResult readsOnlyWhatIsSeen(const Plan &plan, const KvTree &tree,
                                             const VariantFacts &facts) {
  const std::set<int> visible = test::visibleGroups(tree, facts.reach, facts.trimStep);
  for (const abi::Run &run : plan.runs)
    for (int at = run.location; at < run.location + run.tokens; ++at)
      if (!visible.contains(at / facts.trimStep))
        return testing::AssertionFailure() << "location " << at << " is read, and nobody sees it";
  return testing::AssertionSuccess();
}

struct Case {
  VariantFacts facts;
  config::Config config;
};

Case makeCase(const spec::Variant &mask, spec::Partition partition, std::uint64_t turn) {
  const int pageSizes[] = {16, 1, 64, 24, 7, 0};
  spec::Variant variant = mask;
  variant.cache.pageSize = pageSizes[turn % 6];
  const auto device = turn % 4 == 0 ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
  Case one{VariantFacts::of(variant, device), makeConfig(turn % 3 ? 64 : 0, {64, 16}, partition)};
  const int ratios[] = {1, 4, 3, 16};
  one.facts.ratio = ratios[turn % 4];
  one.config.order = config::kAllOrders[turn % 5 % 3];
  for (std::size_t p = 0; p < one.config.phases.size(); ++p)
    if ((turn / 3 + p) % 2 == 0)
      one.config.phases[p].family = config::Family::Sm90;
  return one;
}

/// A prompt all of whose tokens are new, under a window: readers are clipped at both ends.
TEST(VisibleTreeTest, APromptUnderAWindowIsReadWhereItsTilesSeeIt) {
  constexpr int kTokens = 2048, kWindow = 128, kQueriesOfTile = 16, kStep = 64;
  spec::VisibleBounds::Bound window; // kv_pos >= q_pos - 127
  window.at.qPos = 1;
  window.at.rest.constant = 1 - kWindow;
  VariantFacts facts{4, 2};
  facts.trimStep = 16;
  facts.reach = Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {});
  KvTree tree;
  const int prompt = tree.addNode(-1, kTokens).value();
  for (int seen = 1; seen <= kTokens; ++seen)
    ASSERT_TRUE(tree.addQuery(prompt, seen));
  VisibleTree visible;
  TreeView view;
  visible.read(tree, facts.reach, facts.trimStep, view);
  EXPECT_TRUE(view.isClipped);
  EXPECT_LE(view.segments.size(), 2U * kTokens / kStep);
  for (const spec::Partition partition : kAllPartitions) {
    SCOPED_TRACE(config::partitionName(partition));
    const Plan plan = mustVerify(tree, facts, makeConfig(0, {4 * kQueriesOfTile}, partition), 8);
    if (partition != spec::Partition::Union)
      continue;
    for (const abi::Item &item : plan.items)
      EXPECT_LE(item.tokens, kWindow + kQueriesOfTile + kStep);
  }
}

/// Where a mask hides the beginning of a prompt, too, the first step has queries that see nothing of it, and
/// behind them some that do.
TEST(VisibleTreeTest, APromptUnderAWindowWithoutItsBeginningIsCovered) {
  constexpr int kTokens = 1000, kWindow = 64, kFirst = 100; // in the middle of a step
  spec::VisibleBounds::Bound window, first;
  window.at.qPos = 1;
  window.at.rest.constant = 1 - kWindow;
  first.at.rest.constant = kFirst;
  VariantFacts facts{4, 2};
  facts.trimStep = 16;
  facts.reach = Reach::of({{{.from = {first, window}, .until = {}, .conditions = {}}}}, {});
  KvTree tree;
  const int prompt = tree.addNode(-1, kTokens).value();
  for (int seen = 1; seen <= kTokens; ++seen)
    ASSERT_TRUE(tree.addQuery(prompt, seen));
  VisibleTree visible;
  TreeView view;
  visible.read(tree, facts.reach, facts.trimStep, view);
  EXPECT_TRUE(view.isClipped);
  for (const spec::Partition partition : kAllPartitions) {
    SCOPED_TRACE(config::partitionName(partition));
    (void)mustVerify(tree, facts, makeConfig(0, {64}, partition), 8);
  }
}

/// A prefix that sees itself both ways costs what a causal prompt does: a slope, and one segment for the
/// prefix.
TEST(VisibleTreeTest, APrefixOfAPromptIsOneSegmentAndTheRestASlope) {
  constexpr int kTokens = 2000, kPrefix = 300;
  KvTree tree;
  const int prompt = tree.addNode(-1, kTokens).value();
  for (int seen = 1; seen <= kTokens; ++seen)
    ASSERT_TRUE(tree.addQuery(prompt, seen));
  spec::VisibleBounds::Bound own, prefix; // kv_pos < q_pos + 1, kv_pos < 300
  own.at.qPos = 1;
  own.at.rest.constant = 1;
  prefix.at.rest.constant = kPrefix;
  const auto segmentsOf = [&](std::vector<spec::VisibleBounds::Interval> intervals) {
    VisibleTree visible;
    TreeView view;
    visible.read(tree, Reach::of({std::move(intervals), spec::MaskBound::Path}, {}), 16, view);
    EXPECT_EQ(view.readTokens, kTokens);
    return std::vector<Segment>(view.segments.begin(), view.segments.end());
  };
  EXPECT_EQ(segmentsOf({{.from = {}, .until = {own}, .conditions = {}},
                        {.from = {}, .until = {prefix}, .conditions = {}}}),
            (std::vector<Segment>{{0, 0, kPrefix, 0, kTokens},
                                  {0, kPrefix, kTokens - kPrefix, kPrefix, kTokens, 1}}));
  EXPECT_EQ(segmentsOf({{}}), (std::vector<Segment>{{0, 0, kTokens, 0, kTokens}})) << "nothing bounds it";
}

TEST(VisibleTreeTest, PlansOfEveryPartitionReadWhatIsSeenAndNothingElse) {
  Planner planner;
  Plan plan;
  std::uint64_t turn = 0;
  int clipped = 0;
  for (const auto &[name, variant] : test::modelMasks())
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      for (const spec::Partition partition : kAllPartitions) {
        SCOPED_TRACE(name + ", seed " + std::to_string(seed) + ", " + config::partitionName(partition));
        const Case one = makeCase(variant, partition, turn++);
        const KvTree tree = spread(turn % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed), 5);
        const auto made = planner.make(tree, one.facts, one.config, 8, plan);
        ASSERT_TRUE(made) << made.error().message;
        const auto verified = verify(plan, tree, one.facts, one.config);
        ASSERT_TRUE(verified) << verified.error().message;
        if (!one.facts.reach.hasRisingEnd()) { // there the planner is content with a hull
          ASSERT_TRUE(readsOnlyWhatIsSeen(plan, tree, one.facts));
        }
        VisibleTree visible;
        TreeView view;
        visible.read(tree, one.facts.reach, one.facts.trimStep, view);
        clipped += view.isClipped ? 1 : 0;
      }
  EXPECT_GT(clipped, 100);
}

ParamRanges randomRanges(const spec::Variant &variant, unsigned seed) {
  std::mt19937 random(seed);
  ParamRanges params;
  for (std::size_t i = 0; i < variant.params.size(); ++i) {
    const auto least = static_cast<int>(random() % 40) - 8;
    params.push_back(ParamRange{least, least + static_cast<int>(random() % 3)});
  }
  return params;
}

TEST(VisibleTreeTest, RandomMasksAreCovered) {
  Planner planner;
  Plan plan;
  int bounded = 0;
  for (unsigned seed = 0; seed < 8000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const spec::Variant variant = seed % 4 == 0 ? test::randomBands(seed) : test::randomMask(seed);
    Case one = makeCase(variant, kAllPartitions[seed % kAllPartitions.size()], seed);
    one.facts.reach = Reach::of(spec::visibleBounds(variant), randomRanges(variant, seed));
    bounded += one.facts.reach.isAll() ? 0 : 1;
    const KvTree tree = spread(seed % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed), 5);
    const auto made = planner.make(tree, one.facts, one.config, 8, plan);
    ASSERT_TRUE(made) << made.error().message;
    const auto verified = verify(plan, tree, one.facts, one.config);
    ASSERT_TRUE(verified) << verified.error().message;
  }
  EXPECT_GT(bounded, 500);
}

/// The mask of modelMasks() by its name.
spec::Variant maskOf(const std::string &name) {
  for (const auto &[own, variant] : test::modelMasks())
    if (own == name)
      return variant;
  ADD_FAILURE() << "no mask " << name;
  return {};
}

/// Lets leaves grow: any, or those that nobody reads, behind which plans can follow under every mask.
void growSome(KvTree &tree, std::mt19937_64 &random) {
  std::set<int> read;
  if (random() % 2 == 0)
    for (const tree::Query &query : tree.queries())
      read.insert(query.node);
  for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
    if (tree.nodes()[static_cast<std::size_t>(node)].firstChild < 0 && !read.contains(node) && random() % 2)
      (void)tree.append(node, 1 + static_cast<int>(random() % 3));
}

/// What histories of growth came to.
struct Histories {
  int advanced = 0; ///< steps that plans followed in place
  int moved = 0;    ///< windows of these
};

/// Lets the tree grow in steps, each of which is verified.
void verifyHistory(KvTree tree, const Case &one, std::uint64_t seed, Histories &counted) {
  Plan plan = mustPlan(tree, one.facts, one.config, 8);
  std::mt19937_64 random(seed);
  for (int step = 0; step < 12; ++step) {
    growSome(tree, random);
    const Plan before = plan;
    if (advance(tree, plan) == Advance::NeedsNewPlan) {
      ASSERT_EQ(plan.queryPos, before.queryPos); // as it was
      plan = mustPlan(tree, one.facts, one.config, 8);
      continue;
    }
    ++counted.advanced;
    for (std::size_t s = 0; s < plan.windowStarts.size(); ++s)
      counted.moved += plan.windowStarts[s].location > before.windowStarts[s].location ? 1 : 0;
    const auto verified = verify(plan, tree, one.facts, one.config);
    ASSERT_TRUE(verified) << "step " << step << ": " << verified.error().message;
    if (one.facts.reach.hasRisingEnd()) // there the planner is content with a hull
      continue;
    ASSERT_TRUE(readsOnlyWhatIsSeen(plan, tree, one.facts));
    ASSERT_EQ(plan.readTokens, mustPlan(tree, one.facts, one.config, 8).readTokens);
  }
}

TEST(VisibleTreeTest, LeavesGrowAndWindowsMove) {
  int moved = 0;
  std::uint64_t turn = 0;
  for (const auto &[name, variant] : test::modelMasks()) {
    Histories counted;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const spec::Partition partition = kAllPartitions[turn % kAllPartitions.size()];
      SCOPED_TRACE(name + ", seed " + std::to_string(seed) + ", " + config::partitionName(partition));
      const Case one = makeCase(variant, partition, turn++);
      const KvTree tree = spread(turn % 2 == 0 ? test::causalForest(seed) : test::randomForest(seed), 200);
      ASSERT_NO_FATAL_FAILURE(verifyHistory(tree, one, seed, counted));
    }
    EXPECT_GT(counted.advanced, 10) << name;
    moved += counted.moved;
  }
  EXPECT_GT(moved, 100);
}

TEST(VisibleTreeTest, LeavesGrowUnderRandomBands) {
  Histories counted;
  int gaps = 0;
  std::vector<Positions> seen;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case one = makeCase(test::randomBands(seed), kAllPartitions[seed % kAllPartitions.size()], seed);
    one.facts.reach.find(40, 40, seen);
    gaps += seen.size() > 1 ? 1 : 0;
    const KvTree tree = spread(seed % 2 == 0 ? test::randomForest(seed) : test::causalForest(seed), 200);
    ASSERT_NO_FATAL_FAILURE(verifyHistory(tree, one, seed, counted));
  }
  EXPECT_GT(counted.advanced, 3000);
  EXPECT_GT(counted.moved, 100);
  EXPECT_GT(gaps, 200) << "masks that hide something between what they show";
}

// The tree of a report of a wrong result: `advance` followed in place, and the first query lost token 0.
TEST(VisibleTreeTest, ALeafThatNobodyReadsTakesNothingFromOthersUnderAMaskWithAGap) {
  KvTree tree;
  const int root = tree.addNode(-1, 12, 0).value();
  const int first = tree.addNode(root, 4, 32).value(), second = tree.addNode(root, 15, 64).value(),
            third = tree.addNode(root, 1, 96).value();
  for (const int node : {first, root, second})
    (void)tree.addQuery(node);
  const auto facts = VariantFacts::of(maskOf("window and one token far behind"), config::DeviceKind::Cpu);
  for (const spec::Partition partition : kAllPartitions) {
    SCOPED_TRACE(config::partitionName(partition));
    KvTree grown = tree;
    Plan plan = mustVerify(tree, facts, makeConfig(0, {16}, partition));
    ASSERT_TRUE(grown.append(third, 1));
    ASSERT_EQ(advance(grown, plan), Advance::Done);
    const auto verified = verify(plan, grown, facts, makeConfig(0, {16}, partition));
    EXPECT_TRUE(verified) << verified.error().message;
  }
}

// Rule S4.
TEST(VisibleTreeTest, AWindowOverALongPromptIsReadAlone) {
  KvTree tree;
  const int prompt = tree.addNode(-1, 64000, 0).value();
  for (int i = 0; i < 2; ++i)
    (void)tree.addQuery(tree.addNode(prompt, 5, 64000 + 100 * i).value());
  const auto facts = VariantFacts::of(maskOf("window"), config::DeviceKind::Cpu); // of 20 tokens
  for (const spec::Partition partition : kAllPartitions) {
    const Plan plan = mustVerify(tree, facts, makeConfig(0, {16}, partition));
    EXPECT_EQ(plan.readTokens, 15 + 5 + 5) << config::partitionName(partition);
    for (const abi::Run &run : plan.runs)
      EXPECT_GE(run.position, 64005 - 20);
  }
}

TEST(VisibleTreeTest, SinksAndWindowsAreTwoPlacesOfANode) {
  KvTree tree;
  const int prompt = tree.addNode(-1, 1000, 0).value();
  (void)tree.addQuery(tree.addNode(prompt, 10, 1000).value());
  const auto facts = VariantFacts::of(maskOf("sink and window"), config::DeviceKind::Cpu); // 4, and 24
  VisibleTree visible;
  TreeView view;
  visible.read(tree, facts.reach, facts.trimStep, view);
  ASSERT_EQ(view.placeCount(), 3);
  EXPECT_EQ(view.places[0].tokens, 4);
  EXPECT_EQ(view.places[1].tokens, 14);
  EXPECT_EQ(view.places[1].location, 986);
  EXPECT_EQ(view.places[1].position, 4);
  EXPECT_EQ(view.places[1].hidden, 982);
  EXPECT_EQ(view.places[2].position, 18);
  EXPECT_EQ(view.queryPos[0], 27);
  EXPECT_EQ(view.readTokens, 28);
  EXPECT_EQ(mustVerify(tree, facts, makeConfig(0)).queryPos[0], 1009);
}

TEST(VisibleTreeTest, APlanEndsWhereAWindowLeavesASink) {
  KvTree tree;
  const int leaf = tree.addNode(-1, 20, 0).value();
  (void)tree.addQuery(leaf);
  const auto facts = VariantFacts::of(maskOf("sink and window"), config::DeviceKind::Cpu); // 4, and 24
  Plan plan = mustVerify(tree, facts, makeConfig(0));
  ASSERT_TRUE(tree.append(leaf, 8));
  ASSERT_EQ(advance(tree, plan), Advance::Done); // sees 28: all
  ASSERT_TRUE(tree.append(leaf, 1));
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan)
      << "token 4 is seen by nobody, and its page may be free";
}

TEST(VisibleTreeTest, APlanEndsWhereALeafGrowsOutOfAPrefix) {
  KvTree tree;
  const int leaf = tree.addNode(-1, 39, 0).value();
  (void)tree.addQuery(leaf);
  const auto facts = VariantFacts::of(maskOf("prefix alone"), config::DeviceKind::Cpu); // of 40
  Plan plan = mustVerify(tree, facts, makeConfig(0));
  ASSERT_TRUE(tree.append(leaf, 2));
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan) << "its last token is seen by nobody";
}

TEST(VisibleTreeTest, BeginningsAreAtSteps) {
  KvTree tree;
  (void)tree.addQuery(tree.addNode(-1, 1000, 5).value());
  const auto facts = VariantFacts::of(maskOf("window"), config::DeviceKind::Gpu); // pages of 16
  ASSERT_EQ(facts.trimStep, 16);
  VisibleTree visible;
  TreeView view;
  visible.read(tree, facts.reach, facts.trimStep, view);
  EXPECT_EQ(view.places[0].location, 976); // of the first token that is seen: 985
}

/// In a causal chain each token is read by those within a window of it, and of the part that it is in: 64
/// tokens, a kernel's step.
TEST(VisibleTreeTest, LateQueriesOfAChainDoNotReadItsBeginning) {
  KvTree tree;
  const int node = tree.addNode(-1, 4000, 0).value();
  for (int i = 1; i <= 4000; ++i)
    (void)tree.addQuery(node, i);
  const auto facts = VariantFacts::of(maskOf("window"), config::DeviceKind::Cpu);
  VisibleTree visible;
  TreeView view;
  visible.read(tree, facts.reach, facts.trimStep, view);
  ASSERT_TRUE(view.isClipped);
  constexpr int kWindow = 20, kPart = 64;
  EXPECT_GE(view.pathTokens, 4000 * kWindow - kWindow * (kWindow - 1) / 2);
  EXPECT_LT(view.pathTokens, 4000 * (kWindow + kPart));
  EXPECT_GE(view.clippedPos[3000], kWindow - 1);
  EXPECT_LT(view.clippedPos[3000], kWindow + kPart);
  EXPECT_EQ(view.shared[3000], view.clippedPos[3000]);
  const Plan plan = mustVerify(tree, facts, makeConfig(0, {16}));
  EXPECT_LT(summarize(plan, facts).itemTokens, 4000 / 16 * (16 + kWindow + kPart + kWindow));
}

/// It costs what the window costs: nodes above are not looked at.
TEST(VisibleTreeTest, OfALongChainTheWindowIsRead) {
  KvTree tree;
  int last = -1;
  for (int i = 0; i < 100000; ++i)
    last = tree.addNode(last, 1, i).value();
  (void)tree.addQuery(last);
  VisibleTree visible;
  TreeView view;
  visible.read(tree, Reach::ofDefaults(maskOf("window")), 1, view);
  EXPECT_EQ(view.placeCount(), 20);
  EXPECT_EQ(view.places[0].position, 0);
  EXPECT_EQ(view.places[0].hidden, 99980);
}

/// Where the chunks begin of which a query has partials, by its position in the caller's order.
std::vector<std::vector<int>> chunksOfQueries(const Plan &plan) {
  std::vector<std::vector<int>> begins(plan.callerIndex.size());
  for (const abi::Item &item : plan.items) {
    EXPECT_EQ(item.runCount, 1) << "a chunk is one run";
    for (int q = 0; q < item.queryCount; ++q)
      begins[static_cast<std::size_t>(plan.callerIndex[static_cast<std::size_t>(item.queryBegin + q)])]
          .push_back(plan.runs[static_cast<std::size_t>(item.runBegin)].position);
  }
  for (std::vector<int> &own : begins)
    std::sort(own.begin(), own.end());
  return begins;
}

TEST(VisibleTreeTest, AnInvariantPlanGivesAQueryTheChunksThatShowItSomethingWhoeverElseIsThere) {
  const auto facts = VariantFacts::of(maskOf("window"), config::DeviceKind::Cpu); // of 20 tokens
  const config::Config config = makeConfig(32, {16}, spec::Partition::Node);
  const std::vector<int> lengths{10, 0, 25, 3, 70, 1, 19};
  const auto plan = [&](std::vector<int> branches) {
    KvTree tree;
    const int prompt = tree.addNode(-1, 1000, 0).value();
    int location = 1000;
    for (const int length : branches) {
      (void)tree.addQuery(tree.addNode(prompt, length, location).value());
      location += length;
    }
    Planner planner({.isInvariant = true});
    Plan made;
    EXPECT_TRUE(planner.make(tree, facts, config, 4, made));
    EXPECT_TRUE(verify(made, tree, facts, config));
    return chunksOfQueries(made);
  };
  const auto together = plan(lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    EXPECT_EQ(together[i], plan({lengths[i]})[0]) << lengths[i];
  EXPECT_EQ(together[0], (std::vector<int>{960, 992, 1000})); // sees 990 and more, chunks stay whole
  EXPECT_EQ(together[2], (std::vector<int>{1000}));
}

TEST(VisibleTreeTest, AnInvariantPlanEndsWhereAWindowLeavesAChunk) {
  const auto facts = VariantFacts::of(maskOf("window"), config::DeviceKind::Cpu);
  const config::Config config = makeConfig(32, {16}, spec::Partition::Node);
  KvTree tree;
  const int prompt = tree.addNode(-1, 992, 0).value();
  const int ahead = tree.addNode(prompt, 10, 992).value(), behind = tree.addNode(prompt, 1, 2000).value();
  (void)tree.addQuery(ahead);
  (void)tree.addQuery(behind);
  Planner planner({.isInvariant = true});
  Plan plan;
  ASSERT_TRUE(planner.make(tree, facts, config, 4, plan));
  for (int length = 10; length < 19; ++length) {
    ASSERT_TRUE(tree.append(ahead, 1));
    ASSERT_TRUE(tree.append(behind, 1));
    ASSERT_EQ(advance(tree, plan), Advance::Done) << length;
  }
  ASSERT_TRUE(tree.append(ahead, 1)); // sees its own twenty tokens; the other one still sees the prompt's end
  EXPECT_EQ(advance(tree, plan), Advance::NeedsNewPlan);
}

/// What an invariant plan that followed gives a query is what a new one gives it, else bits would tell how
/// often a host planned.
TEST(VisibleTreeTest, InvariantPlansThatFollowGiveTheChunksOfNewOnes) {
  int advanced = 0;
  std::uint64_t turn = 0;
  for (const auto &[name, variant] : test::modelMasks())
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      Case one = makeCase(variant, spec::Partition::Node, turn++);
      one.config = makeConfig(seed % 2 ? 16 : 32, {16}, spec::Partition::Node);
      KvTree tree = spread(seed % 4 < 2 ? test::randomForest(seed) : test::causalForest(seed), 200);
      Planner planner({.isInvariant = true});
      Plan plan, anew;
      ASSERT_TRUE(planner.make(tree, one.facts, one.config, 4, plan));
      std::mt19937_64 random(seed);
      for (int step = 0; step < 8; ++step) {
        growSome(tree, random);
        ASSERT_TRUE(planner.make(tree, one.facts, one.config, 4, anew));
        if (advance(tree, plan) == Advance::NeedsNewPlan) {
          plan = anew;
          continue;
        }
        ++advanced;
        const auto verified = verify(plan, tree, one.facts, one.config);
        ASSERT_TRUE(verified) << verified.error().message;
        ASSERT_EQ(chunksOfQueries(plan), chunksOfQueries(anew)) << "step " << step;
      }
    }
  EXPECT_GT(advanced, 1000);
}

} // namespace
} // namespace deft::plan
