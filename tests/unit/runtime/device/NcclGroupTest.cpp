#include "runtime/device/NcclGroup.h"

#include "tests/support/FakeCuda.h"
#include "tests/support/FakeNccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

namespace deft::device {
namespace {

class NcclGroupTest : public testing::Test {
protected:
  ~NcclGroupTest() override {
    fake_nccl::setAsyncError(0);
    // What was aborted ends in a thread of its own.
    for (int turn = 0; turn < 5000 && fake_nccl::openGroups() > 0; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(fake_nccl::openGroups(), 0);
  }

  support::Result<std::unique_ptr<NcclGroup>> join(const nccl::Id &id, int count, int rank,
                                                   double patience = 20) {
    return NcclGroup::join(nccl_, device_, id, {.count = count, .rank = rank, .patienceSeconds = patience});
  }
  /// In a thread for each rank.
  void run(int count, const std::function<void(NcclGroup &, int)> &work) {
    const nccl::Id id = nccl_->makeId().value();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < count; ++rank)
      ranks.emplace_back([&, rank] {
        const auto group = join(id, count, rank);
        ASSERT_TRUE(group) << group.error().message;
        work(**group, rank);
      });
    for (std::thread &rank : ranks)
      rank.join();
  }

  std::shared_ptr<Device> device_ = Device::open(Driver::load(DEFT_FAKE_CUDA).value()).value();
  std::shared_ptr<const Nccl> nccl_ = Nccl::load(DEFT_FAKE_NCCL).value();
};

TEST_F(NcclGroupTest, GathersWhatEachRankSays) {
  for (const int count : {1, 2, 3})
    run(count, [&](NcclGroup &group, int rank) {
      for (int turn = 0; turn < 3; ++turn) {
        const std::vector<std::byte> own(5, static_cast<std::byte>(10 * turn + rank));
        const auto said = group.gather(own);
        ASSERT_TRUE(said) << said.error().message;
        ASSERT_EQ(static_cast<int>(said->size()), count);
        for (int other = 0; other < count; ++other)
          EXPECT_THAT((*said)[static_cast<std::size_t>(other)],
                      testing::ElementsAreArray(
                          std::vector<std::byte>(5, static_cast<std::byte>(10 * turn + other))));
      }
    });
}

TEST_F(NcclGroupTest, ARankThatDoesNotComeIsAnErrorInTime) {
  const auto begin = std::chrono::steady_clock::now();
  const auto group = join(nccl_->makeId().value(), 2, 0, 0.1);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().message, "not all 2 ranks came within 0.1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(NcclGroupTest, ARankThatSaysNothingIsAnErrorAndEndsTheGroup) {
  const nccl::Id id = nccl_->makeId().value();
  std::thread other([&] { EXPECT_TRUE(join(id, 2, 1)); });
  const auto group = join(id, 2, 0);
  other.join();
  ASSERT_TRUE(group) << group.error().message;
  (*group)->setPatience(0.2);
  const std::byte word{};
  const auto said = (*group)->gather(std::span(&word, 1));
  ASSERT_FALSE(said);
  EXPECT_THAT(said.error().message, testing::HasSubstr("within 0.2 s"));
  EXPECT_EQ((*group)->gather(std::span(&word, 1)).error().message, "the group of ranks has ended");
}

TEST_F(NcclGroupTest, WhatNcclNoticesIsAFaultWithItsWords) {
  run(1, [&](NcclGroup &group, int) {
    EXPECT_TRUE(group.fault());
    fake_nccl::setAsyncError(6);
    const auto fault = group.fault();
    ASSERT_FALSE(fault);
    EXPECT_EQ(fault.error().message,
              "NCCL 2.28.9 has lost a rank: remote process exited or there was a network error");
    group.abort();
    EXPECT_TRUE(group.fault());
  });
}

TEST_F(NcclGroupTest, MessagesOfOtherLengthsAreAnError) {
  run(2, [&](NcclGroup &group, int rank) {
    std::byte sent[8] = {}, received[8] = {};
    const NcclGroup::Message out{1 - rank, sent, 8}, in{1 - rank, received, rank == 0 ? 4U : 8U};
    cu::Stream stream = nullptr;
    ASSERT_EQ(device_->api().streamCreate(&stream, cu::kStreamNonBlocking), cu::kSuccess);
    const auto exchanged = group.exchange(std::span(&out, 1), std::span(&in, 1), stream);
    EXPECT_EQ(exchanged.ok(), rank == 1);
    if (!exchanged) {
      EXPECT_THAT(exchanged.error().message,
                  testing::StartsWith("NCCL 2.28.9 cannot exchange results: invalid usage"));
    }
  });
}

} // namespace
} // namespace deft::device
