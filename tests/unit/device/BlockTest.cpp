#include "tests/device/Words.h"

#include "deft/ptx/block.cuh"
#include "deft/ptx/cluster.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/ptx/named_barrier.cuh"
#include "deft/ptx/tensor_copy.cuh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace deft::test {
namespace {

using ::testing::HasSubstr;

TEST(BlockTest, LanesMeetAndSeeEachOther) {
  for (unsigned seed : {0u, 1u, 2u, 7u})
    EXPECT_EQ(runBlock({.threads = 64, .seed = seed},
                       [] {
                         const int lane = static_cast<int>(threadIdx.x % 32);
                         const int value = static_cast<int>(threadIdx.x) * 3;
                         const int base = value - 3 * lane; // of the warp's first lane
                         for (int i = 0; i < 5; ++i) {
                           EXPECT_EQ(__shfl_sync(~0u, value, i), base + 3 * i);
                           EXPECT_EQ(__shfl_sync(~0u, value, lane + 33), base + 3 * ((lane + 1) % 32));
                           EXPECT_EQ(__shfl_xor_sync(~0u, value, 5), base + 3 * (lane ^ 5));
                           EXPECT_EQ(__shfl_up_sync(~0u, value, 2u), lane < 2 ? value : value - 6);
                         }
                         EXPECT_EQ(__ballot_sync(~0u, lane % 3 == 0), 0x49249249u);
                         EXPECT_TRUE(__any_sync(~0u, lane == 31));
                         EXPECT_FALSE(__all_sync(~0u, lane != 31));
                         EXPECT_EQ(__reduce_min_sync(~0u, -lane), -31);
                         EXPECT_EQ(__reduce_max_sync(~0u, 7u + threadIdx.x % 32), 38u);
                       }),
              "");
}

TEST(BlockTest, ASeedGivesTheOrderAgainAndAnotherSeedAnotherOne) {
  const auto orderOf = [](unsigned seed) {
    std::vector<unsigned> order;
    EXPECT_EQ(runBlock({.threads = 64, .seed = seed}, [&] { order.push_back(threadIdx.x); }), "");
    return order;
  };
  EXPECT_EQ(orderOf(0).front(), 0u);
  EXPECT_EQ(orderOf(5), orderOf(5));
  EXPECT_NE(orderOf(5), orderOf(6));
}

/// Else tests would not see that a barrier is missing between warps.
TEST(BlockTest, SomeSeedsLetWarpsFallBehind) {
  const auto mostApart = [](unsigned seed) {
    std::array<int, 3> steps{};
    int most = 0;
    EXPECT_EQ(runBlock({.threads = 96, .seed = seed},
                       [&] {
                         for (int i = 0; i < 100; ++i) {
                           __syncwarp();
                           if (threadIdx.x % 32 == 0)
                             ++steps[threadIdx.x / 32];
                           const auto [least, largest] = std::ranges::minmax(steps);
                           most = std::max(most, largest - least);
                         }
                       }),
              "");
    return most;
  };
  for (unsigned seed : {0u, 1u, 4u, 5u})
    EXPECT_LE(mostApart(seed), 8) << seed;
  for (unsigned seed : {2u, 3u, 6u, 7u})
    EXPECT_GE(mostApart(seed), 20) << seed;
}

TEST(BlockTest, BlocksOfAClusterReadEachOther) {
  for (unsigned seed : {0u, 1u, 2u})
    EXPECT_EQ(runCluster({.threads = 64, .block = 4, .blocks = 8, .sharedBytes = 8, .seed = seed}, 4,
                         [] {
                           int *mine = reinterpret_cast<int *>(ptx::dynamicShared<16>());
                           for (int turn = 0; turn < 3; ++turn) {
                             if (threadIdx.x == 0)
                               mine[turn % 2] = 10 * turn + ptx::clusterRank();
                             ptx::syncCluster();
                             for (int rank = 0; rank < 4; ++rank)
                               EXPECT_EQ(ptx::readOfBlock(mine + turn % 2, rank), 10 * turn + rank);
                           }
                           EXPECT_EQ(static_cast<int>(blockIdx.x), 4 + ptx::clusterRank());
                           ptx::syncCluster();
                         }),
              "");
  EXPECT_THAT(runCluster({}, 2, [] { ptx::readOfBlock(nullptr, 2); }), HasSubstr("has no block 2"));
  EXPECT_THAT(runCluster({}, 2,
                         [] {
                           if (ptx::clusterRank() == 0)
                             ptx::syncCluster();
                         }),
              HasSubstr("32 threads, thread 0 first, wait for the cluster's barrier"));
}

TEST(BlockTest, LanesAtDifferentWordsAreNamed) {
  EXPECT_THAT(runBlock({},
                       [] {
                         if (threadIdx.x == 9)
                           __syncwarp();
                         else
                           __ballot_sync(~0u, true);
                       }),
              HasSubstr("is at __"));
}

TEST(BlockTest, ALaneThatNeverComesIsADeadlockWithNames) {
  EXPECT_EQ(runBlock({},
                     [] {
                       if (threadIdx.x != 9)
                         __syncwarp();
                     }),
            "nobody can go on: 31 threads, thread 0 first, wait for __syncwarp");
  EXPECT_THAT(runBlock({.threads = 64},
                       [] {
                         if (threadIdx.x < 32)
                           ptx::namedBarrierSync(3, 64);
                       }),
              HasSubstr("wait for barrier 3"));
  EXPECT_THAT(runBlock({.threads = 64}, [] { ptx::namedBarrierArrive(3, 128); }),
              HasSubstr("nobody completes"));
}

TEST(BlockTest, PartsOfAWarpAreNotMeant) {
  EXPECT_THAT(runBlock({}, [] { __ballot_sync(1u, true); }), HasSubstr("a part of a warp"));
}

TEST(BlockTest, BarriersAreForAllOrForThoseWhoAreCounted) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    int before = 0, groups[2] = {};
    EXPECT_EQ(runBlock({.threads = 128, .seed = seed},
                       [&] {
                         const unsigned group = threadIdx.x / 64;
                         ++groups[group];
                         ptx::namedBarrierSync(static_cast<int>(1 + group), 64);
                         EXPECT_EQ(groups[group], 64);
                         ++before;
                         __syncthreads();
                         EXPECT_EQ(before, 128);
                       }),
              "");
  }
}

/// Phases end with the last arrival, and their parity is what waiting asks for.
TEST(BlockTest, RegistersAreNotDealtTwice) {
  const auto deal = []<int kCopying, int kComputing>() {
    return runBlock({.threads = 384}, [] {
      if (threadIdx.x < 128)
        ptx::keepRegisters<kCopying>();
      else
        ptx::takeRegisters<kComputing>();
    });
  };
  EXPECT_EQ((deal.operator()<72, 216>()), "");
  EXPECT_EQ((deal.operator()<88, 208>()), "");
  EXPECT_THAT((deal.operator()<80, 216>()),
              HasSubstr("setmaxnreg deals 2048 registers to a thread of each warp, the launch has 2016"));
}

TEST(BlockTest, MbarriersCountArrivalsByPhases) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    int turns = 0;
    EXPECT_EQ(runBlock({.threads = 64, .sharedBytes = 16, .seed = seed},
                       [&] {
                         const unsigned barrier = ptx::sharedAddress(ptx::dynamicShared<16>());
                         if (threadIdx.x == 0)
                           ptx::mbarrierInit(barrier, 32 + 5);
                         __syncthreads();
                         for (unsigned phase = 0; phase < 3; ++phase) {
                           if (threadIdx.x < 32) {
                             ++turns;
                             ptx::mbarrierArrive(barrier);
                             if (threadIdx.x == 0)
                               ptx::mbarrierArrive(barrier, 5);
                           }
                           ptx::mbarrierWait(barrier, phase & 1);
                           EXPECT_GE(turns, static_cast<int>(32 * (phase + 1)));
                           EXPECT_TRUE(ptx::mbarrierIsComplete(barrier, phase & 1));
                           __syncthreads();
                         }
                       }),
              "");
  }
  EXPECT_THAT(runBlock({.threads = 1, .sharedBytes = 16},
                       [] {
                         const unsigned barrier = ptx::sharedAddress(ptx::dynamicShared<16>());
                         ptx::mbarrierInit(barrier, 1);
                         ptx::mbarrierArrive(barrier, 2);
                       }),
              HasSubstr("fewer arrivals"));
  EXPECT_THAT(runBlock({.threads = 1, .sharedBytes = 16}, [] { ptx::mbarrierArrive(16); }),
              HasSubstr("no mbarrier was set up"));
}

/// What is copied is not there before it is waited for.
TEST(BlockTest, CopiesLandWhenTheyAreAwaited) {
  alignas(16) const int source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(runBlock({.threads = 1, .sharedBytes = 32},
                     [&] {
                       char *shared = ptx::dynamicShared<16>();
                       const auto *values = reinterpret_cast<const int *>(shared);
                       const unsigned to = ptx::sharedAddress(shared);
                       ptx::cpAsync16(to, source);
                       ptx::cpAsyncCommit();
                       ptx::cpAsync16(to + 16, source + 4);
                       ptx::cpAsyncCommit();
                       EXPECT_EQ(values[0], -1);
                       ptx::cpAsyncWait<1>();
                       EXPECT_EQ(values[3], 4);
                       EXPECT_EQ(values[4], -1);
                       ptx::cpAsyncWait<0>();
                       EXPECT_EQ(values[7], 8);
                     }),
            "");
}

TEST(BlockTest, CopiesArriveAtTheirBarrier) {
  alignas(16) const int source[4] = {1, 2, 3, 4};
  for (unsigned seed = 0; seed < 6; ++seed)
    EXPECT_EQ(runBlock({.threads = 32, .sharedBytes = 16 + 32 * 16, .seed = seed},
                       [&] {
                         char *shared = ptx::dynamicShared<16>();
                         const unsigned barrier = ptx::sharedAddress(shared);
                         if (threadIdx.x == 0)
                           ptx::mbarrierInit(barrier, 32);
                         __syncwarp();
                         ptx::cpAsync16(barrier + 16 + threadIdx.x * 16, source);
                         ptx::mbarrierArriveAfterCopies(barrier);
                         ptx::mbarrierWait(barrier, 0);
                         EXPECT_EQ(reinterpret_cast<const int *>(shared)[4 + (threadIdx.x + 7) % 32 * 4 + 3],
                                   4);
                       }),
              "");
}

/// Copies that a barrier counts still belong to their group, and land once: what has been written over them
/// stays.
TEST(BlockTest, CopiesOfABarrierCanBeAwaitedAsAGroup) {
  alignas(16) const int source[4] = {1, 2, 3, 4};
  for (unsigned seed = 0; seed < 6; ++seed)
    EXPECT_EQ(runBlock({.threads = 1, .sharedBytes = 32, .seed = seed},
                       [&] {
                         char *shared = ptx::dynamicShared<16>();
                         auto *values = reinterpret_cast<int *>(shared) + 4;
                         const unsigned barrier = ptx::sharedAddress(shared);
                         ptx::mbarrierInit(barrier, 1);
                         ptx::cpAsync16(barrier + 16, source);
                         ptx::cpAsyncCommit();
                         ptx::mbarrierArriveAfterCopies(barrier);
                         ptx::cpAsyncWait<0>();
                         EXPECT_EQ(values[3], 4);
                         values[3] = 5;
                         ptx::mbarrierWait(barrier, 0);
                         EXPECT_EQ(values[3], 5);
                       }),
              "");
}

/// A box of a tensor, rows swizzled, zeros beyond its columns, and a barrier that counts the bytes.
TEST(BlockTest, TheCopyEngineBringsBoxes) {
  constexpr int kRows = 8, kColumns = 72;
  alignas(16) std::uint16_t tensor[kRows][kColumns];
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column)
      tensor[row][column] = static_cast<std::uint16_t>(row * 100 + column + 1);
  CopyBox box;
  box.tensor = reinterpret_cast<const std::byte *>(tensor);
  box.rank = 3;
  box.size[0] = kColumns, box.size[1] = 1, box.size[2] = kRows;
  box.strideBytes[0] = 2, box.strideBytes[2] = kColumns * 2;
  box.box[0] = 64, box.box[1] = 1, box.box[2] = 4;
  const abi::TensorMap map = box.map();
  for (unsigned seed = 0; seed < 3; ++seed)
    EXPECT_EQ(runBlock({.threads = 32, .sharedBytes = 1024, .seed = seed},
                       [&] {
                         char *shared = ptx::dynamicShared<1024>();
                         const unsigned base = ptx::sharedAddress(shared), barrier = base + 512;
                         if (threadIdx.x == 0)
                           ptx::mbarrierInit(barrier, 1);
                         __syncwarp();
                         if (ptx::electOne()) {
                           ptx::mbarrierExpectBytes(barrier, 4 * 128);
                           ptx::tensorCopy(base, map, barrier, 64, 0, 6);
                           ptx::mbarrierArrive(barrier);
                         }
                         ptx::mbarrierWait(barrier, 0);
                         for (int row = 0; row < 4; ++row)
                           for (int column = 0; column < 64; ++column) {
                             std::uint16_t got;
                             const int piece = column / 8 ^ row % 8;
                             std::memcpy(&got, shared + row * 128 + piece * 16 + column % 8 * 2, 2);
                             const bool isInside = row + 6 < kRows && column + 64 < kColumns;
                             EXPECT_EQ(got, isInside ? tensor[row + 6][column + 64] : 0)
                                 << row << " " << column;
                           }
                       }),
              "");
}

TEST(BlockTest, MemoryBeyondTheBlocksIsNotTheBlocks) {
  EXPECT_THAT(runBlock({.threads = 1, .sharedBytes = 64},
                       [] { Block::now().shared(ptx::sharedAddress(ptx::dynamicShared<16>()) + 50, 16); }),
              HasSubstr("has no 16 bytes at its byte 50"));
  EXPECT_THAT(runBlock({.threads = 1, .sharedBytes = 64}, [] { ptx::dynamicShared<16>()[64] = 0; }),
              HasSubstr("behind the block's shared memory"));
}

TEST(BlockTest, BlocksKnowTheirPlaces) {
  std::set<std::pair<unsigned, unsigned>> places;
  for (unsigned block = 0; block < 3; ++block)
    EXPECT_EQ(runBlock({.threads = 5, .block = block, .blocks = 3},
                       [&] {
                         EXPECT_EQ(gridDim.x, 3u);
                         EXPECT_EQ(ptx::blocksReadHere(), 3);
                         places.emplace(blockIdx.x, threadIdx.x);
                       }),
              "");
  EXPECT_EQ(places.size(), 15u);
}

} // namespace
} // namespace deft::test
