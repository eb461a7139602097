#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace deft {
namespace {

class GpuPeersTest : public GpuTest {
protected:
  static GpuPeersOptions optionsOf(int count, int rank) {
    return {.count = count, .rank = rank, .queries = 3, .heads = kQueryHeads, .dim = kHeadDim};
  }
  template <typename Given> static std::string textOf(const Given &result) {
    return result ? "" : result.error().text();
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 16);
  void *aligned_ =
      reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 127) / 128 * 128);
};

TEST_F(GpuPeersTest, ARankByItselfHasItsResultsAndALateOneIsNamed) {
  const int bytes = 3 * kQueryHeads * (2 * kHeadDim + 4); // of one buffer, which ends with a line of 128
  EXPECT_EQ(GpuPeers::bytes(optionsOf(2, 0)).value(), 640 + 2 * ((bytes + 127) / 128 * 128));
  std::vector<std::byte> other(1 << 16);
  for (const int count : {1, 2}) {
    std::fill(memory_.begin(), memory_.end(), std::byte{0});
    void *const memories[] = {
        aligned_,
        reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(other.data()) + 127) / 128 * 128)};
    GpuPeersOptions options = optionsOf(count, 0);
    options.timeoutSeconds = 0.1;
    options.memories = std::span<void *const>(memories, static_cast<std::size_t>(count));
    const auto peers = GpuPeers::make(gpu_, options);
    if (!peers && peers.error().code == ErrorCode::Environment)
      GTEST_SKIP() << peers.error().message;
    ASSERT_TRUE(peers) << peers.error().text();
    Memory out(3 * kQueryHeads * kHeadDim), merged(3 * 2 * kHeadDim);
    std::vector<float> lse(3 * kQueryHeads, 0.0f), mergedLse(3 * 2, -1);
    for (int i = 0; i < 3 * kQueryHeads * kHeadDim; ++i)
      out.data()[i] = toBf16(static_cast<float>(i % 64));
    const RankShape shape{3, kQueryHeads, kHeadDim, StateType::BF16};
    const auto done =
        peers->merge(shape, {out.data(), lse.data()}, 1, 2, {merged.data(), mergedLse.data()}, stream_);
    ASSERT_TRUE(done) << done.error().text();
    if (count == 2) {
      EXPECT_THAT(textOf(peers->check()),
                  testing::StartsWith("rank 1 did not give its results of run 1 in time"));
      continue;
    }
    EXPECT_EQ(textOf(peers->check()), "");
    for (int i = 0; i < 3 * 2 * kHeadDim; ++i)
      ASSERT_EQ(fromBf16(merged.data()[i]), static_cast<float>(i % 64)) << i;
    EXPECT_THAT(mergedLse, testing::Each(0.0f));
    EXPECT_THAT(textOf(peers->merge({4, kQueryHeads, kHeadDim, StateType::BF16}, {out.data(), lse.data()}, 0,
                                    1, {merged.data()}, stream_)),
                "own is of shape [4, 4, 64], but the group was made for [3, 4, 64] at most");
    EXPECT_THAT(textOf(peers->merge(shape, {out.data(), lse.data()}, 3, 2, {merged.data()}, stream_)),
                "headCount is 2, not between 0 and 1");
  }
}

/// Merges results that are `own` everywhere; gives what all ranks' are.
Result<float> mergeOf(const Result<GpuPeers> &peers, void *stream, float own) {
  const RankShape shape{3, kQueryHeads, kHeadDim, StateType::BF16};
  if (!peers)
    return peers.error();
  if (auto agreed = peers->agree({}); !agreed)
    return agreed.error();
  Memory out(3 * kQueryHeads * kHeadDim);
  std::fill_n(out.data(), 3 * kQueryHeads * kHeadDim, toBf16(own));
  std::vector<float> lse(3 * kQueryHeads, 0.0f);
  if (auto merged =
          peers->merge(shape, {out.data(), lse.data()}, 0, kQueryHeads, {out.data(), lse.data()}, stream);
      !merged)
    return merged.error();
  if (auto late = peers->check(); !late)
    return late.error();
  return fromBf16(out.data()[3 * kQueryHeads * kHeadDim - 1]);
}

TEST_F(GpuPeersTest, ProcessesThatMeetMergeByEitherTransport) {
  for (const Transport transport : {Transport::Auto, Transport::Mapped, Transport::Nccl}) {
    const std::string name =
        "gpu_peers_test." + std::to_string(getpid()) + "." + std::to_string(static_cast<int>(transport));
    const auto mergeAs = [&](int rank, float own) -> Result<float> {
      GpuPeersOptions options = optionsOf(2, rank);
      options.transport = transport;
      const auto peers = GpuPeers::meet(gpu_, options, name);
      if (peers) {
        EXPECT_EQ(peers->transport().value(),
                  transport == Transport::Nccl ? Transport::Nccl : Transport::Mapped);
      }
      return mergeOf(peers, stream_, own);
    };
    const pid_t other = fork();
    if (other == 0) {
      const auto merged = mergeAs(1, 6);
      _exit(merged && *merged == 4 ? 0 : 1);
    }
    const auto merged = mergeAs(0, 2);
    int status = 0;
    waitpid(other, &status, 0);
    if (!merged && merged.error().code == ErrorCode::Environment &&
        merged.error().text().find("NVRTC") != std::string::npos)
      GTEST_SKIP() << merged.error().message;
    ASSERT_TRUE(merged) << merged.error().text();
    EXPECT_EQ(*merged, 4);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(GpuPeersTest, RanksThatHandOnAnIdMergeByNccl) {
  const PeersId id = GpuPeers::makeId().value();
  const auto mergeAs = [&](int rank, float own) {
    GpuPeersOptions options = optionsOf(2, rank);
    options.id = &id;
    return mergeOf(GpuPeers::make(gpu_, options), stream_, own);
  };
  const pid_t other = fork();
  if (other == 0) {
    const auto merged = mergeAs(1, 6);
    _exit(merged && *merged == 4 ? 0 : 1);
  }
  const auto merged = mergeAs(0, 2);
  int status = 0;
  waitpid(other, &status, 0);
  if (!merged && merged.error().text().find("NVRTC") != std::string::npos)
    GTEST_SKIP() << merged.error().message;
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(*merged, 4);
  EXPECT_EQ(status, 0);
}

TEST_F(GpuPeersTest, AnOldNcclIsNamed) {
  const test::SetVariable version("DEFT_FAKE_NCCL_VERSION", "21212");
  EXPECT_THAT(textOf(GpuPeers::makeId()),
              testing::AllOf(testing::StartsWith("NCCL 2.12.12 is too old"),
                             testing::HasSubstr("install version 2.14 or later")));
}

TEST_F(GpuPeersTest, RanksThatDoNotFitAreNamedWhereTheyMeet) {
  const std::string name = "gpu_peers_test." + std::to_string(getpid()) + ".fits";
  GpuPeersOptions options = optionsOf(2, 0);
  options.timeoutSeconds = 0.2;
  EXPECT_THAT(textOf(GpuPeers::meet(gpu_, options, name)),
              testing::StartsWith("rank 1 of `" + name + "` did not come within 0.2 s"));
  EXPECT_THAT(textOf(GpuPeers::meet(gpu_, options, "a/b")),
              testing::StartsWith("`a/b` is no name of a group"));
  options.timeoutSeconds = 20;
  const pid_t other = fork();
  if (other == 0) {
    options.rank = 1;
    options.dim = 2 * kHeadDim;
    _exit(GpuPeers::meet(gpu_, options, name) ? 1 : 0);
  }
  EXPECT_THAT(textOf(GpuPeers::meet(gpu_, options, name)),
              testing::StartsWith("rank 1 makes a group for other results than rank 0"));
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  void *const memories[] = {aligned_, aligned_};
  options.memories = memories;
  EXPECT_EQ(textOf(GpuPeers::meet(gpu_, options, name)),
            "GpuPeersOptions::memories is not null\n  = hint: ranks that meet make their own");
}

TEST_F(GpuPeersTest, WrongOptionsAreNamed) {
  const auto bytes = [&](auto change) {
    GpuPeersOptions options = optionsOf(2, 0);
    change(options);
    return textOf(GpuPeers::bytes(options));
  };
  EXPECT_EQ(bytes([](auto &options) { options.count = 65; }),
            "GpuPeersOptions::count is 65, not between 1 and 64");
  EXPECT_EQ(bytes([](auto &options) { options.rank = 2; }),
            "GpuPeersOptions::rank is 2, not between 0 and 1");
  EXPECT_THAT(bytes([](auto &options) { options.dim = 60; }),
              testing::StartsWith("GpuPeersOptions::headDim is 60, which is not a multiple of 8"));
  EXPECT_EQ(bytes([](auto &options) { options.headBegin = 5; }),
            "GpuPeersOptions::headBegin is 5, not between 0 and 4");
  EXPECT_EQ(bytes([](auto &options) { options.headBegin = 1, options.headCount = 4; }),
            "GpuPeersOptions::headCount is 4, not between 0 and 3");
  EXPECT_EQ(bytes([](auto &options) { options.transport = static_cast<Transport>(3); }),
            "GpuPeersOptions::transport is 3, not between 0 and 2");
  EXPECT_EQ(textOf(GpuPeers::make(gpu_, optionsOf(2, 0))),
            "GpuPeersOptions::memories is null, and so is the id");
  void *const memories[] = {aligned_, nullptr};
  const PeersId id{};
  GpuPeersOptions options = optionsOf(2, 0);
  options.memories = memories;
  options.id = &id;
  EXPECT_EQ(textOf(GpuPeers::make(gpu_, options)), "GpuPeersOptions::memories is given beside an id");
  options.id = nullptr;
  options.transport = Transport::Nccl;
  EXPECT_EQ(textOf(GpuPeers::make(gpu_, options)),
            "GpuPeersOptions::transport is NCCL, and memories are mapped");
  options.transport = Transport::Auto;
  EXPECT_THAT(textOf(GpuPeers::make(gpu_, options)),
              testing::StartsWith("GpuPeersOptions::memories of rank 1 is null"));
}

} // namespace
} // namespace deft
