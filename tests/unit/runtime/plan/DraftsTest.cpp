#include "tests/unit/runtime/plan/DraftTesting.h"

namespace deft::plan {
namespace {

class DraftsTest : public testing::TestWithParam<spec::Partition> {};

TEST_P(DraftsTest, QueriesReadTheirRequestAndWhatTheirRowSays) {
  std::mt19937 random(7);
  int joined = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Step step(random, 1 + static_cast<int>(random() % 9), std::array{1, 8, 16, 40, 256}[round % 5]);
    sharing::Batch batch{sharing::PageSize(step.pageSize), /*checksEntries=*/true};
    ASSERT_NO_FATAL_FAILURE(step.update(batch));
    const VariantFacts facts{
        .ratio = std::array{1, 3, 4, 8}[random() % 4], .kvHeads = 2, .pageSize = step.pageSize};
    Plan plan = mustPlan(batch.tree(), facts, randomConfig(random, GetParam()), 16);
    auto tables = makeRoomForDrafts(batch.drafted(), plan);
    ASSERT_TRUE(tables);
    Drafted drafted{std::move(*tables), {}};
    std::vector<int> gains(step.lengths.size());
    for (abi::DraftRequest &request : drafted.tables.requests) {
      request.mostGain = 16;
      gains[index(request.request)] = static_cast<int>(random() % 17);
    }
    for (const abi::DraftItem &item : drafted.tables.items)
      joined += item.partCount == 1;
    if (batch.drafted().empty())
      continue;
    drafted.place(step, plan, gains);
    EXPECT_EQ(drafted.unserved, 0u);
    EXPECT_EQ(drafted.noTree, 0u);
    ASSERT_EQ(readBy(plan, step), expected(step, gains));
    expectMerged(plan);
  }
  EXPECT_GT(joined, 50);
}

INSTANTIATE_TEST_SUITE_P(EveryPartition, DraftsTest, testing::ValuesIn(kAllPartitions), partitionTestName);

// Three requests of 40 drafts in tiles of 32 queries: what an item reads of a request is one part, and a run
// for each draft that it may see.
TEST(DraftTablesTest, AnItemHasAPartOfEachRequest) {
  Step step = [] {
    std::mt19937 random(1);
    return Step(random, 3, 1);
  }();
  step.lengths.assign(3, 100), step.drafts.assign(3, 40);
  sharing::Batch batch{sharing::PageSize(step.pageSize), false};
  ASSERT_NO_FATAL_FAILURE(step.update(batch));
  Plan plan = mustPlan(batch.tree(), {.ratio = 4, .kvHeads = 1}, makeConfig(0, {128}), 1);
  const auto tables = makeRoomForDrafts(batch.drafted(), plan);
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->requests.size(), 3u);
  EXPECT_EQ(tables->requests[1].firstQuery, 40);
  EXPECT_EQ(tables->requests[1].length, 100);
  EXPECT_EQ(tables->requests[1].location, step.rowPages * step.pageSize + 100);
  for (const abi::DraftItem &item : tables->items) {
    std::set<int> requests;
    for (int p = item.partBegin; p < item.partBegin + item.partCount; ++p)
      EXPECT_TRUE(requests.insert(tables->parts[index(p)].request).second);
  }
}

/// kv_pos >= q_pos - window
Reach windowOf(int window) {
  spec::VisibleBounds bounds;
  bounds.intervals.push_back({});
  spec::VisibleBounds::Bound from;
  from.at.qPos = 1;
  from.at.rest.constant = -window;
  bounds.intervals[0].from.push_back(from);
  return Reach::of(bounds, {});
}

// Wherever in its tree a draft stands, what it sees in its window is read, and what none of them sees is not.
TEST(DraftTablesTest, WindowsOfAllTreesArePlanned) {
  constexpr int kWindow = 50;
  std::mt19937 random(9);
  std::size_t tokens = 0, seen = 0;
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const Step step(random, 4, 60);
    sharing::Batch batch{sharing::PageSize(step.pageSize), false};
    ASSERT_NO_FATAL_FAILURE(step.update(batch));
    VariantFacts facts{.ratio = 4, .kvHeads = 1};
    facts.reach = windowOf(kWindow).widened(59, 59 + 16);
    Plan plan = mustPlan(batch.tree(), facts, randomConfig(random, kAllPartitions[index(round % 8)]), 16);
    auto tables = makeRoomForDrafts(batch.drafted(), plan);
    ASSERT_TRUE(tables);
    if (tables->isEmpty())
      continue;
    Drafted drafted{std::move(*tables), {}};
    drafted.place(step, plan, std::vector<int>(step.lengths.size()));
    Read read = readBy(plan, step), all = expected(step, std::vector<int>(step.lengths.size()));
    for (std::size_t query = 0; query < all.size(); ++query) {
      const int qPos = std::prev(all[query].end())->first;
      tokens += all[query].size();
      seen += read[query].size();
      for (const auto &token : all[query])
        EXPECT_EQ(read[query].count(token), token.first >= qPos - kWindow ? 1u : read[query].count(token));
      for (const auto &token : read[query]) {
        EXPECT_EQ(read[query].count(token), 1u);
        EXPECT_EQ(all[query].count(token), 1u);
      }
    }
  }
  EXPECT_LT(seen, tokens);
}

// A mask that hides some of what stands for drafts says nothing of the drafts themselves.
TEST(DraftTablesTest, APlanThatLeavesOutSomeOfAStandInHasNoTables) {
  std::mt19937 random(1);
  Step step(random, 1, 1);
  step.lengths = {20}, step.drafts = {40};
  sharing::Batch batch{sharing::PageSize(step.pageSize), false};
  ASSERT_NO_FATAL_FAILURE(step.update(batch));
  VariantFacts facts{.ratio = 1, .kvHeads = 1};
  spec::VisibleBounds bounds; // kv_pos < 30
  bounds.intervals.push_back({});
  spec::VisibleBounds::Bound until;
  until.at.rest.constant = 30;
  bounds.intervals[0].until.push_back(until);
  facts.reach = Reach::of(bounds, {});
  Plan plan = mustPlan(batch.tree(), facts, makeConfig(0, {64}));
  EXPECT_FALSE(makeRoomForDrafts(batch.drafted(), plan));
}

} // namespace
} // namespace deft::plan
