#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

namespace deft {
namespace {

constexpr int kPageSize = 16, kRow = 8, kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64;
constexpr int kTokenElements = kKvHeads * kHeadDim, kMostRanks = 3;

std::uint16_t bf16Of(float full) {
  std::uint32_t bits;
  std::memcpy(&bits, &full, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x8000) >> 16);
}
float floatOf(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

struct Computed {
  std::vector<std::uint16_t> out;
  std::vector<float> lse;
};

/// Three requests that share a prompt; each rank has the tokens that it holds, in a cache of its own, and NaN
/// elsewhere. A token's K and V follow from its request and its place.
class RanksApiTest : public testing::Test {
protected:
  /// The same for a token of the prompt, whoever asks.
  static float valueOf(int request, int position, int at) {
    const unsigned who = position < kPrompt ? 0u : static_cast<unsigned>(request) + 1;
    std::mt19937 random(who * 10007u + static_cast<unsigned>(position) * 31u + static_cast<unsigned>(at));
    return static_cast<float>(random() % 1000) / 500 - 1;
  }
  static void writeToken(std::vector<std::uint16_t> &cache, int slot, int request, int position, int salt) {
    for (int i = 0; i < kTokenElements; ++i)
      cache[static_cast<std::size_t>(slot * kTokenElements + i)] =
          bf16Of(valueOf(request, position, salt + i));
  }

  struct Cache {
    std::vector<std::uint16_t> k = std::vector<std::uint16_t>(64 * kPageSize * kTokenElements, 0x7fff), v = k;
    void write(int slot, int request, int position) {
      writeToken(k, slot, request, position, 0);
      writeToken(v, slot, request, position, 5000);
    }
  };

  Computed run(const Plan &plan, const Cache &cache, std::span<const int> table) {
    Computed computed;
    computed.out.assign(static_cast<std::size_t>(plan.queryCount() * kQueryHeads * kHeadDim), 0xffff);
    computed.lse.assign(static_cast<std::size_t>(plan.queryCount() * kQueryHeads), NAN);
    const auto ran = runtime_.run(
        attention_, plan, {.q = q_.data(), .k = cache.k.data(), .v = cache.v.data(), .pageTable = table},
        {.out = computed.out.data(), .lse = computed.lse.data()});
    EXPECT_TRUE(ran) << ran.error().text();
    return computed;
  }

  /// All of each request in one cache, read by itself.
  Computed alone() {
    Cache cache;
    Tree tree;
    std::vector<int> table(24);
    for (int page = 0; page < 24; ++page)
      table[static_cast<std::size_t>(page)] = page;
    for (int request = 0; request < 3; ++request) {
      const int begin = request * kRow * kPageSize, tokens = lengths_[static_cast<std::size_t>(request)];
      for (int t = 0; t < tokens; ++t)
        cache.write(begin + t, request, t);
      tree.addQuery(tree.addRoot(tokens, begin).value()).value();
    }
    return run(Plan::make(attention_, tree).value(), cache, table);
  }

  /// Ranks as threads: each runs what it holds, and all merge.
  void expectAsAlone(const std::vector<Computed> &parts) {
    const Computed expected = alone();
    static int group = 0;
    const std::string name = "ranks_test." + std::to_string(getpid()) + "." + std::to_string(group++);
    const int count = static_cast<int>(parts.size());
    std::vector<std::thread> threads;
    std::vector<Computed> merged(parts.size(), expected);
    for (int rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        auto peers = Peers::meet({.name = name, .count = count, .rank = rank, .bytes = 1 << 16});
        ASSERT_TRUE(peers) << peers.error().text();
        const RankShape shape{3, kQueryHeads, kHeadDim, StateType::BF16};
        const auto done = peers->merge(shape, {parts[at].out.data(), parts[at].lse.data()}, 0, kQueryHeads,
                                       {merged[at].out.data(), merged[at].lse.data()});
        ASSERT_TRUE(done) << done.error().text();
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const Computed &one : merged) {
      ASSERT_EQ(one.out, merged[0].out);
      for (std::size_t i = 0; i < one.out.size(); ++i)
        ASSERT_NEAR(floatOf(one.out[i]), floatOf(expected.out[i]), 0x1p-6) << i;
      for (std::size_t i = 0; i < one.lse.size(); ++i)
        ASSERT_NEAR(one.lse[i], expected.lse[i], 1e-4) << i;
    }
  }

  RanksApiTest() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::uint16_t &value : q_)
      value = bf16Of(normal(random));
  }

  static constexpr int kPrompt = 70;
  std::vector<int> lengths_ = {90, 75, 110};
  std::vector<std::uint64_t> ids_ = {10, 11, 12};
  std::vector<std::uint16_t> q_ = std::vector<std::uint16_t>(3 * kQueryHeads * kHeadDim);
  Attention attention_ = loadPackage(DEFT_TEST_PACKAGE).value();
  Runtime runtime_ = Runtime::create({.threads = 2}).value();
};

/// As vLLM's decode context parallelism has it: one block table, of which each rank has its part of each
/// page.
TEST_F(RanksApiTest, InterleavedBatchesAreThoseOfOneRank) {
  for (const int count : {1, 2, 3})
    for (const int unit : {1, 4, 16}) {
      SCOPED_TRACE(std::to_string(count) + " ranks, units of " + std::to_string(unit));
      lengths_ = {90, 75, 110};
      const int pageTokens = kPageSize * count;
      std::vector<int> table(3 * kRow, -1);
      int free = 0;
      for (int page = 0; page < kRow; ++page)
        for (int request = 0; request < 3; ++request) {
          const bool isShared = (page + 1) * pageTokens <= kPrompt;
          table[static_cast<std::size_t>(request * kRow + page)] =
              isShared && request > 0 ? table[static_cast<std::size_t>(page)] : free++;
        }
      std::vector<Cache> caches(static_cast<std::size_t>(count));
      const auto write = [&](int request, int position) {
        const int page = table[static_cast<std::size_t>(request * kRow + position / pageTokens)],
                  inPage = position % pageTokens;
        caches[static_cast<std::size_t>(inPage / unit % count)].write(
            page * kPageSize + inPage / (unit * count) * unit + inPage % unit, request, position);
      };
      for (int request = 0; request < 3; ++request)
        for (int t = 0; t < lengths_[static_cast<std::size_t>(request)]; ++t)
          write(request, t);
      std::vector<PagedBatch> batches;
      std::vector<Plan> plans;
      std::vector<Computed> parts(static_cast<std::size_t>(count));
      const auto step = [&] {
        return PagedRequests{
            .table = {.entries = table, .rowStride = kRow}, .lengths = lengths_, .ids = ids_};
      };
      for (int rank = 0; rank < count; ++rank) {
        batches.push_back(PagedBatch::make({.pageSize = kPageSize}).value());
        setRanks(batches.back(), {.count = count, .rank = rank, .unit = unit}).value();
        batches.back().update(step()).value();
        plans.push_back(batches.back().plan(attention_).value());
        parts[static_cast<std::size_t>(rank)] =
            run(plans.back(), caches[static_cast<std::size_t>(rank)], table);
      }
      expectAsAlone(parts);
      for (int more = 0; more < 3; ++more) { // decode steps
        for (int request = 0; request < 3; ++request)
          write(request, lengths_[static_cast<std::size_t>(request)]++);
        for (int rank = 0; rank < count; ++rank) {
          const auto at = static_cast<std::size_t>(rank);
          batches[at].grow(step().table, lengths_).value();
          plans[at].advance(batches[at].tree()).value();
          parts[at] = run(plans[at], caches[at], table);
        }
        expectAsAlone(parts);
      }
    }
}

/// Pages of several ranks with the same number are different pages.
TEST_F(RanksApiTest, BatchesByPageAreThoseOfOneRank) {
  // Rows go on behind the longest request, so that all that it may gain lies on one rank.
  constexpr int kCount = 2, kLongRow = 12;
  // The prompt of four pages is split; ends lie on one rank each.
  std::vector<int> table(3 * kLongRow, -1), holders(3 * kLongRow, Ranks::kNoHolder), free(kCount, 0);
  for (int request = 0; request < 3; ++request)
    for (int page = 0; page < kLongRow; ++page) {
      const auto at = static_cast<std::size_t>(request * kLongRow + page);
      const bool isShared = page < kPrompt / kPageSize;
      holders[at] = isShared ? page % kCount : request % kCount;
      table[at] = isShared && request > 0 ? table[static_cast<std::size_t>(page)]
                                          : free[static_cast<std::size_t>(holders[at])]++;
    }
  std::vector<Cache> caches(kCount);
  std::vector<Computed> parts(kCount);
  std::vector<PagedBatch> batches;
  std::vector<Plan> plans;
  const auto write = [&](int request, int t) {
    const auto at = static_cast<std::size_t>(request * kLongRow + t / kPageSize);
    caches[static_cast<std::size_t>(holders[at])].write(table[at] * kPageSize + t % kPageSize, request, t);
  };
  for (int request = 0; request < 3; ++request)
    for (int t = 0; t < lengths_[static_cast<std::size_t>(request)]; ++t)
      write(request, t);
  const PageTable pages{.entries = table, .rowStride = kLongRow, .holders = holders};
  std::int64_t read = 0;
  for (int rank = 0; rank < kCount; ++rank) {
    batches.push_back(PagedBatch::make({.pageSize = kPageSize}).value());
    setRanks(batches.back(), {.count = kCount, .rank = rank, .layout = RankLayout::ByPage, .unit = kPageSize})
        .value();
    batches.back().update({.table = pages, .lengths = lengths_, .ids = ids_}).value();
    EXPECT_EQ(batches.back().summary().tokens, 90 + 75 + 110 - 2 * 64);
    plans.push_back(batches.back().plan(attention_, {.partition = Partition::Node}).value());
    read += plans.back().summary().tokensRead;
    parts[static_cast<std::size_t>(rank)] = run(plans.back(), caches[static_cast<std::size_t>(rank)], table);
  }
  EXPECT_EQ(read, 90 + 75 + 110 - 2 * 64) << "each token is read once, by the rank that holds it";
  expectAsAlone(parts);
  for (int request = 0; request < 3; ++request)
    write(request, lengths_[static_cast<std::size_t>(request)]++);
  for (int rank = 0; rank < kCount; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    batches[at].grow(pages, lengths_).value();
    EXPECT_EQ(plans[at].advance(batches[at].tree()).value(), Advanced::InPlace) << "each end has one holder";
    parts[at] = run(plans[at], caches[at], table);
  }
  expectAsAlone(parts);
}

TEST_F(RanksApiTest, AProposalSplitsWhatIsShared) {
  Tree tree;
  const int prompt = tree.addRoot(320, 0).value();
  for (int i = 0; i < 4; ++i)
    tree.addQuery(tree.addChild(prompt, 32, 320 + 32 * i).value()).value();
  const std::vector<int> holders = proposeHolders(tree, 4, 16).value();
  ASSERT_EQ(holders.size(), 28U);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(std::count(holders.begin(), holders.end(), rank), 7) << rank;
  setRanks(tree, {.count = 4, .rank = 1, .layout = RankLayout::ByPage, .unit = 16, .holders = holders})
      .value();
  EXPECT_EQ(Plan::make(attention_, tree, {.partition = Partition::Node}).value().summary().tokensRead,
            7 * 16);
  clearRanks(tree).value();
  EXPECT_EQ(Plan::make(attention_, tree, {.partition = Partition::Node}).value().summary().tokensRead, 448);
}

TEST_F(RanksApiTest, WrongRanksAreNamed) {
  const auto textOf = [](const auto &result) { return result ? "" : result.error().text(); };
  Tree tree;
  const int root = tree.addRoot(20, 0).value();
  tree.addQuery(root).value();
  EXPECT_EQ(textOf(setRanks(tree, {.count = 65})), "Ranks::count is 65, not between 1 and 64");
  EXPECT_EQ(textOf(setRanks(tree, {.count = 4, .rank = 4})), "Ranks::rank is 4, not between 0 and 3");
  const std::vector<int> beyond = {0, 4};
  EXPECT_THAT(
      textOf(setRanks(tree, {.count = 4, .layout = RankLayout::ByPage, .unit = 16, .holders = beyond})),
      testing::StartsWith("page 1 lies on rank 4, and there are 4 ranks"));
  const std::vector<int> none = {0, Ranks::kNoHolder};
  setRanks(tree, {.count = 4, .layout = RankLayout::ByPage, .unit = 16, .holders = none}).value();
  EXPECT_THAT(textOf(Plan::make(attention_, tree)),
              testing::StartsWith("no rank holds token 16 of node 0, at location 16"));

  PagedBatch batch = PagedBatch::make({.pageSize = kPageSize}).value();
  EXPECT_EQ(textOf(setRanks(batch, {.count = 2, .unit = 5})),
            "Ranks::unit is 5, and does not divide pages of 16");
  EXPECT_THAT(textOf(setRanks(batch, {.count = 2, .layout = RankLayout::ByNode})),
              testing::StartsWith("Ranks::layout is by node, but a batch finds its nodes itself"));
  EXPECT_EQ(textOf(setRanks(batch, {.count = 2, .layout = RankLayout::ByPage, .unit = 32})),
            "Ranks::unit is 32, and the batch has pages of 16");
  setRanks(batch, {.count = 2, .layout = RankLayout::ByPage, .unit = 16}).value();
  const std::vector<int> table = {0, 1, 2}, lengths = {40}, holders = {0, 1, 2}, fitting = {0, 1, 0};
  EXPECT_EQ(textOf(batch.update({.table = {.entries = table, .rowStride = 3}, .lengths = lengths})),
            "PageTable::holders is null, and the batch has ranks by page");
  EXPECT_EQ(textOf(batch.update(
                {.table = {.entries = table, .rowStride = 3, .holders = holders}, .lengths = lengths})),
            "PageTable::holders are wrong: page 2 lies on rank 2, and there are 2 ranks");
  batch.update({.table = {.entries = table, .rowStride = 3, .holders = fitting}, .lengths = lengths}).value();
  EXPECT_THAT(textOf(setRanks(batch, {.count = 2})), testing::StartsWith("the batch has 1 requests"));

  PagedBatch invariant = PagedBatch::make({.pageSize = kPageSize, .invariantChunk = 64}).value();
  EXPECT_THAT(textOf(setRanks(invariant, {.count = 2, .layout = RankLayout::ByPage, .unit = 16})),
              testing::StartsWith("Ranks::layout is by page, and the batch has an invariant chunk"));
  PagedBatch plain = PagedBatch::make({.pageSize = kPageSize}).value();
  EXPECT_THAT(textOf(plain.update(
                  {.table = {.entries = table, .rowStride = 3, .holders = fitting}, .lengths = lengths})),
              testing::StartsWith("PageTable::holders is given, and the batch has no ranks by page"));

  SequenceTree sequences = SequenceTree::make({.pageSize = 32, .pages = 4}).value();
  EXPECT_THAT(
      textOf(setRanks(sequences, {.count = 3, .unit = 16})),
      testing::StartsWith("Ranks::unit is 16, and a page of 32 tokens cannot be dealt to 3 ranks by it"));
  EXPECT_EQ(textOf(setRanks(sequences, {.count = 2, .layout = RankLayout::ByPage, .unit = 16})),
            "Ranks::layout is 1, sequences are interleaved");
}

} // namespace
} // namespace deft
