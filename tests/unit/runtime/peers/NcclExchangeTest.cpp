#include "runtime/peers/NcclExchange.h"

#include "tests/unit/runtime/peers/GpuRanks.h"

#include <atomic>

namespace deft::peers {
namespace {

class NcclExchangeTest : public GpuRanks {
protected:
  Exchange join(const device::nccl::Id &id, const GpuGroup &group) const {
    return NcclExchange::create(nccl_, device_, group, id, /*joinSeconds=*/20);
  }
  /// Until it is found, or too long.
  static std::optional<support::Error> awaitFault(GpuExchange &exchange) {
    for (int turn = 0; turn < 5000; ++turn) {
      if (auto fault = exchange.takeFault())
        return fault;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return {};
  }

  std::shared_ptr<const device::Nccl> nccl_ = device::Nccl::load(DEFT_FAKE_NCCL).value();
};

TEST_F(NcclExchangeTest, EachRankHasItsHeadsOfEverybodysResults) {
  for (const int count : {1, 2, 3}) {
    const device::nccl::Id id = nccl_->makeId().value();
    run(count, [&](int rank) {
      GpuGroup group = groupOf(count, rank);
      group.headBegin = rank == 2 ? 0 : kHeads * rank / count; // the last one merges all
      group.headCount = rank == 2 ? kHeads : kHeads * (rank + 1) / count - group.headBegin;
      const auto exchange = join(id, group);
      ASSERT_TRUE(exchange) << exchange.error().message;
      EXPECT_EQ((*exchange)->transport(), Transport::Nccl);
      for (int turn = 1; turn <= 3; ++turn) {
        const Results own = resultsOf(rank, turn);
        const int skipped = turn == 3 ? 1 : 0; // some of its heads
        Results to = roomFor(group.headCount - skipped);
        const auto merged = (*exchange)->merge(
            mergeOf(own, to, group.headBegin + skipped, group.headCount - skipped), nullptr);
        ASSERT_TRUE(merged) << merged.error().message;
        EXPECT_TRUE(to == mergedOf(count, group.headBegin + skipped, group.headCount - skipped, turn));
      }
      EXPECT_FALSE((*exchange)->takeFault());
    });
  }
}

TEST_F(NcclExchangeTest, AGraphOfMergesIsReplayed) {
  const device::nccl::Id id = nccl_->makeId().value();
  run(2, [&](int rank) {
    const auto exchange = join(id, groupOf(2, rank));
    ASSERT_TRUE(exchange) << exchange.error().message;
    const device::cu::Stream stream = newStream();
    Results own = resultsOf(rank), to = roomFor(kHeads);
    const auto graph =
        capture(stream, [&] { return (*exchange)->merge(mergeOf(own, to, 0, kHeads), stream); });
    for (int turn = 1; turn <= 4; ++turn) {
      const Results next = resultsOf(rank, turn);
      std::copy(next.out.begin(), next.out.end(), own.out.begin());
      std::copy(next.lse.begin(), next.lse.end(), own.lse.begin());
      ASSERT_EQ(device_->api().graphLaunch(graph, stream), device::cu::kSuccess);
      EXPECT_TRUE(to == mergedOf(2, 0, kHeads, turn)) << turn;
    }
    EXPECT_FALSE((*exchange)->takeFault());
    destroy(graph);
  });
}

TEST_F(NcclExchangeTest, ARankThatStaysAwayFromAReplayIsNamedInTime) {
  const device::nccl::Id id = nccl_->makeId().value();
  std::atomic<int> done = 0;
  run(3, [&](int rank) {
    const auto exchange = join(id, groupOf(3, rank, 1));
    ASSERT_TRUE(exchange) << exchange.error().message;
    const device::cu::Stream stream = newStream();
    const Results own = resultsOf(rank);
    Results to = roomFor(kHeads);
    const auto graph =
        capture(stream, [&] { return (*exchange)->merge(mergeOf(own, to, 0, kHeads), stream); });
    ASSERT_EQ(device_->api().graphLaunch(graph, stream), device::cu::kSuccess);
    if (rank != 2) {
      to = roomFor(kHeads);
      ASSERT_EQ(device_->api().graphLaunch(graph, stream), device::cu::kSuccess);
      const auto fault = awaitFault(**exchange);
      ASSERT_TRUE(fault.has_value());
      EXPECT_EQ(fault->code, support::ErrorCode::Environment);
      EXPECT_EQ(fault->message, "rank 2 did not give its results of run 2 in time");
      EXPECT_TRUE(to == roomFor(kHeads)) << "nothing was written";
      // Neither a replay nor a call waits any more.
      ASSERT_EQ(device_->api().graphLaunch(graph, stream), device::cu::kSuccess);
      EXPECT_TRUE(to == roomFor(kHeads));
      EXPECT_EQ((*exchange)->merge(mergeOf(own, to, 0, kHeads), stream).error().message, fault->message);
      EXPECT_EQ((*exchange)->agree({}, "", {}).error().message, fault->message);
    }
    // It is there, but late: the group of this one ends when all have seen it.
    for (++done; done < 3;)
      std::this_thread::yield();
    destroy(graph);
  });
}

TEST_F(NcclExchangeTest, ARankThatStaysAwayFromACallIsAnErrorInTime) {
  const device::nccl::Id id = nccl_->makeId().value();
  std::atomic<bool> isOver = false;
  run(2, [&](int rank) {
    const auto exchange = join(id, groupOf(2, rank, 0.3));
    ASSERT_TRUE(exchange) << exchange.error().message;
    const Results own = resultsOf(rank);
    Results to = roomFor(kHeads);
    if (rank == 0) {
      const auto merged = (*exchange)->merge(mergeOf(own, to, 0, kHeads), nullptr);
      ASSERT_FALSE(merged);
      EXPECT_EQ(merged.error().message, "the ranks did not begin an exchange within 0.3 s");
      EXPECT_TRUE((*exchange)->takeFault());
      isOver = true;
    }
    while (!isOver)
      std::this_thread::yield();
  });
}

TEST_F(NcclExchangeTest, WhatNcclNoticesIsAFault) {
  const auto exchange = join(nccl_->makeId().value(), groupOf(1, 0));
  ASSERT_TRUE(exchange) << exchange.error().message;
  EXPECT_FALSE((*exchange)->takeFault());
  fake_nccl::setAsyncError(6);
  const auto fault = awaitFault(**exchange);
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->message, testing::StartsWith("NCCL 2.28.9 has lost a rank: remote process exited"));
}

TEST_F(NcclExchangeTest, RanksThatDifferAreNamed) {
  struct Case {
    std::function<void(GpuGroup &)> change;
    std::string said;
  };
  for (const Case &one :
       {Case{[](GpuGroup &group) { group.heads = 8; }, "rank 1 makes a group for other results than rank 0"},
        Case{[](GpuGroup &group) { group.version = 2; },
             "rank 1 has another version of the library than rank 0"}}) {
    const device::nccl::Id id = nccl_->makeId().value();
    run(2, [&](int rank) {
      GpuGroup group = groupOf(2, rank);
      if (rank == 1)
        one.change(group);
      const auto exchange = join(id, group);
      ASSERT_FALSE(exchange);
      EXPECT_EQ(exchange.error().code, support::ErrorCode::Usage);
      if (rank == 0) {
        EXPECT_EQ(exchange.error().message, one.said);
      }
    });
  }
}

TEST_F(NcclExchangeTest, RanksThatHaveOtherTablesAreNamedWithWhatBothClaim) {
  const device::nccl::Id id = nccl_->makeId().value();
  run(3, [&](int rank) {
    const auto exchange = join(id, groupOf(3, rank));
    ASSERT_TRUE(exchange) << exchange.error().message;
    Agreement own;
    own.hashes = {1, 2, 3, 4};
    std::vector<int> holders = {0, 1, 2, 0};
    EXPECT_TRUE((*exchange)->agree(own, "page", holders));
    if (rank == 2) {
      own.hashes[Agreement::Tree] = 5;
      holders = {0, 1, 2, 2, 1};
    }
    const auto agreed = (*exchange)->agree(own, "page", holders);
    ASSERT_FALSE(agreed);
    EXPECT_EQ(agreed.error().message,
              rank == 0 ? "rank 2 has another tree or layout than rank 0: page 3 is claimed by rank 0 and by "
                          "rank 2"
              : rank == 1
                  ? "rank 2 has another tree or layout than rank 1"
                  : "rank 0 has another tree or layout than rank 2: page 3 is claimed by rank 0 and by "
                    "rank 2");
  });
}

} // namespace
} // namespace deft::peers
