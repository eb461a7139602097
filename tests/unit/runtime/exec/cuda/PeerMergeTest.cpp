#include "runtime/exec/cuda/PeerMerge.h"

#include "tests/unit/runtime/exec/cuda/CompilesEverywhere.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <array>
#include <vector>

namespace deft::exec {
namespace {

TEST(PeerMergeTest, TheKernelsCompileForEveryTargetWithoutSpills) {
  for (const StateType type : {StateType::F32, StateType::F16, StateType::BF16})
    if (!IsSkipped())
      expectCompilesEverywhere("deft_merge_peers.cu", PeerMerge::source(type));
}

TEST(PeerMergeTest, MemoryHasTwoBuffersOfWholeLines) {
  EXPECT_EQ(PeerMerge::bufferBytes(StateType::BF16, 64 * 32, 128), 64 * 32 * (256 + 4));
  EXPECT_EQ(PeerMerge::bufferBytes(StateType::F32, 1, 4), 128);
  EXPECT_EQ(PeerMerge::memoryBytes(StateType::F32, 1, 4),
            static_cast<std::int64_t>(sizeof(abi::PeerMemory)) + 256);
}

// Blocks wait for each other: there are no more than run at once.
TEST(PeerMergeTest, LaunchesABlockAMultiprocessorAtMost) {
  const FakeGpu gpu;
  const auto merge = PeerMerge::create(gpu.device, StateType::BF16);
  if (!merge && merge.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << merge.error().message;
  ASSERT_TRUE(merge.ok()) << merge.error().message;
  const int most = gpu.device->facts().multiprocessors;
  struct Case {
    int queries, heads, dim, lanes, blocks;
  };
  for (const Case &each : {Case{1, 8, 128, 16, 1}, Case{3, 8, 128, 16, 3}, Case{0, 8, 128, 16, 1},
                           Case{most + 5, 8, 128, 16, most}}) {
    const std::int64_t rows = std::int64_t{each.queries} * each.heads;
    std::vector<std::uint16_t> own(static_cast<std::size_t>(rows * each.dim)), out(own);
    std::vector<float> lse(static_cast<std::size_t>(rows));
    std::vector<abi::PeerMemory> memory(
        static_cast<std::size_t>(PeerMerge::memoryBytes(StateType::BF16, rows, each.dim)) /
            sizeof(abi::PeerMemory) +
        1);
    abi::PeersArgs args{};
    args.ranks[0] = memory.data();
    args.bufferBytes = PeerMerge::bufferBytes(StateType::BF16, rows, each.dim);
    args.own = own.data();
    args.ownLse = lse.data();
    args.out = out.data();
    args.count = 1;
    args.queries = each.queries;
    args.heads = args.headCount = each.heads;
    args.dim = each.dim;
    (void)fake_cuda::takeCalls();
    ASSERT_TRUE(merge->launch(args, nullptr).ok());
    const auto calls = fake_cuda::takeCalls();
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].kernel, "deft_merge_peers_bf16");
    EXPECT_EQ(calls[0].blocks, static_cast<unsigned>(each.blocks)) << each.queries;
    EXPECT_EQ(calls[0].argsAs<abi::PeersArgs>().lanesOfRow, each.lanes);
    unsigned long long *const late = calls[0].argsAs<abi::PeersArgs>().late;
    ASSERT_NE(late, nullptr);
    EXPECT_FALSE(merge->takeFault().has_value());
    *late = 7ULL << 32 | 3; // as the kernel writes it
    const auto fault = merge->takeFault();
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->message, "rank 2 did not give its results of run 7 in time");
    EXPECT_FALSE(merge->takeFault().has_value());
  }
}

} // namespace
} // namespace deft::exec
