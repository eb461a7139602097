#include "runtime/plan/Drafts.h"

#include "runtime/plan/PlaceDrafts.h"
#include "runtime/sharing/Batch.h"
#include "tests/support/DraftTrees.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <map>
#include <random>
#include <set>

namespace deft::plan {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Requests in the rows of a table, some of which begin with the same pages, and their drafts' trees.
struct Step {
  int pageSize, rowPages;
  std::vector<int> entries, lengths, drafts;
  std::vector<test::DraftParents> trees;
  int rows = 0; ///< of each request in the mask
  std::vector<std::uint32_t> mask;

  Step(std::mt19937 &random, int requests, int mostDrafts) : pageSize(std::array{1, 4, 16}[random() % 3]) {
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    rowPages = 640 / pageSize;
    int page = 0;
    for (int r = 0; r < requests; ++r) {
      drafts.push_back(below(8) == 0 ? 0 : 1 + below(mostDrafts));
      const int most = rowPages * pageSize - drafts.back() - 64;
      lengths.push_back(below(9) == 0 ? 0 : below(std::max(most, 1)));
      const int shared = r > 0 && below(3) > 0 ? below(rowPages) : 0;
      for (int p = 0; p < rowPages; ++p)
        entries.push_back(p < shared ? entries[index((r - 1) * rowPages + p)] : page++);
      // The slots of drafts, and those of tokens to come, are nobody else's.
      for (int p = lengths.back() / pageSize; p < rowPages; ++p)
        entries[index(r * rowPages + p)] = page++;
      trees.push_back(drafts.back() == 0 ? test::DraftParents() : test::draftTreeOf(drafts.back(), random));
    }
    rows = std::max(*std::max_element(drafts.begin(), drafts.end()), 1) + below(5);
    for (const test::DraftParents &tree : trees) {
      const auto own = test::maskOf(tree, rows, random);
      mask.insert(mask.end(), own.begin(), own.end());
    }
  }

  void update(sharing::Batch &batch) const {
    const auto updated = batch.update(
        {.table = {.entries = entries, .rowStride = rowPages}, .lengths = lengths, .drafts = drafts});
    ASSERT_TRUE(updated) << updated.error().message;
  }
  int slotOf(int location) const {
    return entries[index(location / pageSize)] * pageSize + location % pageSize;
  }
  int slot(int request, int position) const { return slotOf(request * rowPages * pageSize + position); }
};

/// By caller's query: position and slot of each token that it reads.
using Read = std::vector<std::multiset<std::pair<int, int>>>;

Read readBy(const Plan &plan, const Step &step) {
  Read read(plan.callerIndex.size());
  for (const abi::Item &item : plan.items) {
    int tokens = 0;
    EXPECT_GT(item.tokens, 0);
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[index(r)];
      EXPECT_EQ(run.begin, tokens);
      tokens += run.tokens;
      EXPECT_LE(run.queryEnd, item.queryCount);
      for (int query = run.queryBegin; query < run.queryEnd; ++query)
        for (int t = 0; t < run.tokens; ++t)
          read[index(plan.callerIndex[index(item.queryBegin + query)])].insert(
              {run.position + t, step.slotOf(run.location + t)});
    }
    EXPECT_EQ(item.tokens, tokens);
  }
  return read;
}

Read expected(const Step &step, const std::vector<int> &gains) {
  Read read;
  for (int r = 0; r < static_cast<int>(step.lengths.size()); ++r) {
    const int length = step.lengths[index(r)] + gains[index(r)];
    for (int i = 0; i < step.drafts[index(r)]; ++i) {
      auto &own = read.emplace_back();
      for (int t = 0; t < length; ++t)
        own.insert({t, step.slot(r, t)});
      for (int j = 0; j < step.drafts[index(r)]; ++j)
        if (test::doesSee(step.trees[index(r)], i, j))
          own.insert({length + test::depthOf(step.trees[index(r)], j), step.slot(r, length + j)});
    }
  }
  return read;
}

/// What a query of the plan's order merges, by items that have a partial for it.
void expectMerged(const Plan &plan) {
  std::map<int, int> written; // by slot: the query
  std::vector<int> direct(plan.callerIndex.size());
  for (const abi::Item &item : plan.items)
    for (int query = item.queryBegin; query < item.queryBegin + item.queryCount; ++query)
      if (item.partialBegin < 0)
        ++direct[index(query)];
      else
        written[item.partialBegin + query - item.queryBegin] = query;
  std::vector<int> merged(plan.callerIndex.size());
  for (std::size_t m = 0; m < plan.mergeQuery.size(); ++m) {
    ++merged[index(plan.mergeQuery[m])];
    for (int s = plan.mergeBegin[m]; s < plan.mergeBegin[m + 1]; ++s)
      EXPECT_EQ(written[plan.mergeSlot[index(s)]], plan.mergeQuery[m]);
  }
  for (std::size_t query = 0; query < merged.size(); ++query)
    EXPECT_EQ(merged[query] + direct[query], 1) << "query " << query;
}

config::Config randomConfig(std::mt19937 &random, spec::Partition partition) {
  config::Config config =
      makeConfig(std::array{16, 48, 128, 0}[random() % 4],
                 random() % 2 == 0 ? std::vector<int>{64, 16} : std::vector<int>{128}, partition);
  config.order = random() % 2 == 0 ? config::Order::Alternate : config::Order::FromRoot;
  if (random() % 2 == 0)
    config.phases = {{"tiles", -1, config::Family::Sm90, 64, 64, 2, 8}};
  return config;
}

/// The plan as it is when the mask has been read.
struct Drafted {
  DraftTables tables;
  std::vector<int> lengths;
  unsigned long long unserved = 0, noTree = 0;

  void place(const Step &step, Plan &plan, const std::vector<int> &gains) {
    abi::DraftArgs args = draftArgs(tables, plan);
    for (std::size_t r = 0; r < step.lengths.size(); ++r)
      lengths.push_back(step.lengths[r] + gains[r]);
    args.bits = step.mask.data();
    args.lengths = lengths.data();
    args.rows = step.rows;
    args.unserved = &unserved;
    args.noTree = &noTree;
    placeDrafts(args);
  }
};

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
