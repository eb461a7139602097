// Drafts of a batch over ranks, each with its own part of the cache, by the public headers alone.
#include "tests/unit/runtime/api/RankedDrafts.h"

#include <gmock/gmock.h>

#include <thread>
#include <unistd.h>

namespace deft {
namespace {

using test::RankedDrafts;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kHeads = RankedDrafts::kQueryHeads, kDim = RankedDrafts::kHeadDim;
std::size_t index(int i) { return RankedDrafts::index(i); }
std::string messageOf(const Result<void> &result) { return result ? "none" : result.error().message; }

/// A rank's batch, plan and results.
struct Rank {
  PagedBatch batch;
  Plan plan;
  std::vector<std::uint16_t> out = {};
  std::vector<float> lse = {};
};

class RankDraftsApiTest : public testing::Test {
protected:
  PagedBatch batchOf(const RankedDrafts &of, int rank) {
    PagedBatch batch = PagedBatch::make({.pageSize = RankedDrafts::kPageSize}).value();
    setRanks(batch, of.ranks(rank)).value();
    batch.update(of.requests()).value();
    return batch;
  }
  std::vector<Rank> ranksOf(const RankedDrafts &of, int count, const PlanOptions &options) {
    std::vector<Rank> ranks;
    for (int rank = 0; rank < count; ++rank) {
      PagedBatch batch = batchOf(of, rank);
      Plan plan = batch.plan(attention_, options).value();
      ranks.push_back({std::move(batch), std::move(plan)});
    }
    return ranks;
  }

  /// Each rank runs what it holds, and all merge, as threads.
  void expectRight(RankedDrafts &of, std::vector<Rank> &ranks) {
    const int count = static_cast<int>(ranks.size()), queries = of.queries();
    for (int r = 0; r < count; ++r) {
      Rank &rank = ranks[index(r)];
      rank.plan.draft(of.mask()).value();
      const RankedDrafts::Cache cache = of.cacheOf(r, of.lengths());
      ASSERT_EQ(rank.plan.queryCount(), queries);
      rank.out.assign(index(queries * kHeads * kDim), 0xffff);
      rank.lse.assign(index(queries * kHeads), NAN);
      const auto ran = runtime_.run(
          attention_, rank.plan,
          {.q = of.q().data(), .k = cache.k.data(), .v = cache.v.data(), .pageTable = of.entries()},
          {.out = rank.out.data(), .lse = rank.lse.data()});
      ASSERT_TRUE(ran) << ran.error().text();
    }
    static int group = 0;
    const std::string name = "rank_drafts." + std::to_string(getpid()) + "." + std::to_string(group++);
    std::vector<std::uint16_t> out(ranks[0].out.size());
    std::vector<float> lse(ranks[0].lse.size());
    std::vector<std::thread> threads;
    for (int r = 0; r < count; ++r)
      threads.emplace_back([&, r] {
        auto peers = Peers::meet({.name = name, .count = count, .rank = r, .bytes = 1 << 20});
        ASSERT_TRUE(peers) << peers.error().text();
        Rank &rank = ranks[index(r)];
        std::vector<std::uint16_t> ownOut(out.size());
        std::vector<float> ownLse(lse.size());
        const auto merged = peers->merge(
            {queries, kHeads, kDim, StateType::BF16}, {rank.out.data(), rank.lse.data()}, 0, kHeads,
            r == 0 ? MergedState{out.data(), lse.data()} : MergedState{ownOut.data(), ownLse.data()});
        ASSERT_TRUE(merged) << merged.error().text();
      });
    for (std::thread &thread : threads)
      thread.join();
    std::vector<double> wideOut;
    for (const std::uint16_t value : out)
      wideOut.push_back(RankedDrafts::wide(value));
    of.expectRight(wideOut, {lse.begin(), lse.end()}, of.lengths());
  }

  std::mt19937 random_{23};
  Attention attention_ = loadPackage(DEFT_TEST_PACKAGE).value();
  Runtime runtime_ = Runtime::create({.threads = 2}).value();
};

TEST_F(RankDraftsApiTest, EachDraftSeesItsTreeOnAllRanks) {
  unsigned seed = 0;
  for (const RankedDrafts::Layout &layout : RankedDrafts::layouts()) {
    SCOPED_TRACE(layout.name());
    RankedDrafts of(
        layout, {test::eagleTree(random_), test::draftChain(5), {}, test::anyDraftTree(40, random_)}, ++seed);
    std::vector<Rank> ranks = ranksOf(of, layout.count, {});
    ASSERT_NO_FATAL_FAILURE(expectRight(of, ranks));
    for (int step = 0; step < 3; ++step) { // some are accepted, others come
      for (int &length : of.lengths())
        length += static_cast<int>(random_() % 5);
      of.redraw();
      for (Rank &rank : ranks) {
        if (step == 1)
          rank.batch.update(of.requests()).value();
        else
          rank.batch.grow(of.table(), of.lengths()).value();
        rank.plan.advance(rank.batch.tree()).value();
      }
      ASSERT_NO_FATAL_FAILURE(expectRight(of, ranks)) << "step " << step;
    }
  }
}

TEST_F(RankDraftsApiTest, EveryPartitionAndLargeTrees) {
  unsigned seed = 100;
  for (const auto partition : {Partition::Query, Partition::Node, Partition::NodeChunk, Partition::Flatten,
                               Partition::Cascade, Partition::Greedy, Partition::Union, Partition::Auto}) {
    SCOPED_TRACE(static_cast<int>(partition));
    const RankedDrafts::Layout layout = RankedDrafts::layouts()[seed % 20];
    RankedDrafts of(layout, {test::jetSpecTree(128, random_), test::draftStar(70), test::draftChain(1)},
                    seed);
    std::vector<Rank> ranks = ranksOf(of, layout.count, {.partition = partition});
    ASSERT_NO_FATAL_FAILURE(expectRight(of, ranks)) << layout.name();
    seed += 3;
  }
}

// Each token is read once, by the rank that has it, drafts among them.
TEST_F(RankDraftsApiTest, RanksShareTheTokens) {
  RankedDrafts of({.count = 4}, {test::draftChain(8)}, 5);
  of.lengths() = {96};
  std::int64_t read = 0;
  for (Rank &rank : ranksOf(of, 4, {.partition = Partition::Node})) {
    rank.plan.draft(of.mask()).value();
    EXPECT_EQ(rank.plan.summary().tokensRead, 24 + 2);
    read += rank.plan.summary().tokensRead;
  }
  EXPECT_EQ(read, 96 + 8);
}

// All ranks of a step have the same batch, so they agree, and each says the same of a wrong mask.
TEST_F(RankDraftsApiTest, WhatIsWrongIsSaidOnEachRank) {
  RankedDrafts of({.count = 2, .unit = 4}, {test::draftChain(6), test::draftChain(3)}, 9);
  for (Rank &rank : ranksOf(of, 2, {})) {
    EXPECT_EQ(messageOf(rank.plan.draft({.bits = of.bits().data(), .drafts = 5})),
              "DraftMask::bits has 5 drafts of a request, and request 0 has 6");
    std::vector<std::uint32_t> wrong = of.bits();
    wrong[2] = 0;
    EXPECT_EQ(messageOf(rank.plan.draft({.bits = wrong.data(), .drafts = of.rows()})),
              "bits[0][2] is not a row of a tree of drafts");
    std::vector<int> lengths = of.lengths();
    ++lengths[1];
    EXPECT_THAT(messageOf(rank.plan.draft(of.mask(&lengths))),
                HasSubstr("request 1 had " + std::to_string(lengths[1]) + " tokens"));
    EXPECT_EQ(messageOf(rank.plan.draft(of.mask())), "none");
    const auto invariant = rank.batch.plan(attention_, {.invariant = true});
    ASSERT_FALSE(invariant);
    EXPECT_THAT(invariant.error().message, StartsWith("an invariant plan"));
  }

  const std::vector<int> table = {0, 1, 2}, lengths = {40}, holders = {0, 1, Ranks::kNoHolder};
  PagedBatch batch = PagedBatch::make({.pageSize = RankedDrafts::kPageSize}).value();
  setRanks(batch, {.count = 2, .layout = RankLayout::ByPage, .unit = RankedDrafts::kPageSize}).value();
  const PageTable pages{.entries = table, .rowStride = 3, .holders = holders};
  for (const auto &[tokens, drafts] : {std::pair(32, 1), std::pair(30, 9)}) {
    const std::vector<int> length = {tokens}, count = {drafts};
    EXPECT_THAT(messageOf(batch.update({.table = pages, .lengths = length, .drafts = count})),
                HasSubstr("page 2 of row 0 is -1"));
  }
  const std::vector<int> before = {30}, two = {2};
  EXPECT_EQ(messageOf(batch.update({.table = pages, .lengths = before, .drafts = two})), "none");
}

} // namespace
} // namespace deft
