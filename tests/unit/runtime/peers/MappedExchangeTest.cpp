#include "runtime/peers/MappedExchange.h"

#include "tests/unit/runtime/peers/GpuRanks.h"

namespace deft::peers {
namespace {

class MappedExchangeTest : public GpuRanks {
protected:
  void SetUp() override {
    GpuRanks::SetUp();
    constexpr auto kLine = static_cast<std::int64_t>(sizeof(Line));
    for (int rank = 0; rank < 2; ++rank)
      rooms_.emplace_back(static_cast<std::size_t>(
          exec::PeerMerge::memoryBytes(exec::StateType::F32, kQueries * kHeads, kDim) / kLine));
    for (auto &room : rooms_)
      memories_.push_back(room.data());
  }
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<std::vector<Line>> rooms_;
  std::vector<void *> memories_;
};

TEST_F(MappedExchangeTest, RanksMergeInMemoryOfTheProgram) {
  run(2, [&](int rank) {
    const auto exchange = MappedExchange::create(device_, groupOf(2, rank), memories_);
    ASSERT_TRUE(exchange) << exchange.error().message;
    EXPECT_EQ((*exchange)->transport(), Transport::Mapped);
    for (int turn = 1; turn <= 3; ++turn) {
      const Results own = resultsOf(rank, turn);
      Results to = roomFor(2);
      ASSERT_TRUE((*exchange)->merge(mergeOf(own, to, 1, 2), nullptr));
      EXPECT_TRUE(to == mergedOf(2, 1, 2, turn));
    }
    EXPECT_FALSE((*exchange)->takeFault());
  });
}

TEST_F(MappedExchangeTest, RanksThatHaveNotMetCannotAgree) {
  const auto exchange = MappedExchange::create(device_, groupOf(2, 0), memories_);
  ASSERT_TRUE(exchange) << exchange.error().message;
  EXPECT_EQ((*exchange)->agree({}, "", {}).error().message,
            "ranks in memory that the program has mapped cannot compare what they have");
}

} // namespace
} // namespace deft::peers
