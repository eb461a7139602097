#include "compiler/kernels/Occupancy.h"

#include <gtest/gtest.h>

namespace deft::kernels {
namespace {

using config::Config;

TEST(OccupancyTest, BlocksAreEstimatedAsTheHardwareSharesThem) {
  const KernelShape kernel{32, 8, spec::Tensors::alike(128)};
  const target::Target &hopper = *target::findTarget("sm_90a");
  // One block of the sm90 family fills a multiprocessor's registers.
  EXPECT_EQ(blocksPerSm(kernel, {"tiles", -1, config::Family::Sm90, 128, 64, 4, 12}, &hopper), 1);
  EXPECT_EQ(blocksPerSm(kernel, {"tiles", -1, config::Family::Sm90, 64, 64, 2, 8}, &hopper), 2);
  // Two stages of 64 tokens take a third of the shared memory, but 200 registers a thread leave room for two.
  EXPECT_EQ(blocksPerSm(kernel, {"narrow", -1, config::Family::Sm80, 16, 64, 2, 4}, &hopper), 2);
  EXPECT_EQ(blocksPerSm(kernel, {"narrow", -1, config::Family::Sm80, 16, 64, 4, 4}, &hopper), 1);
  EXPECT_EQ(estimateBlocks(
                kernel,
                Config{spec::Partition::Union, 0, {{"narrow", -1, config::Family::Sm80, 16, 64, 4, 4}}, {}},
                &hopper, 132),
            132);
}

TEST(OccupancyTest, AThreadOfACpuWorksOnOneItemAtATime) {
  Config config;
  config.phases = {{.name = "tiles", .family = config::Family::Cpu, .tileQ = 64}};
  EXPECT_EQ(blocksPerSm({32, 8, spec::Tensors::alike(128)}, config.phases[0], nullptr), 1);
  EXPECT_EQ(estimateBlocks({32, 8, spec::Tensors::alike(128)}, config, nullptr, 16), 16);
}

TEST(OccupancyTest, BlocksOfALaunchAreWavesOfThoseThatRunAtATime) {
  EXPECT_EQ(mostBlocks({.name = "tiles", .family = config::Family::Sm90}, 132), 132);
  EXPECT_EQ(mostBlocks({.name = "tiles", .family = config::Family::Sm80}, 264), 8 * 264);
}

} // namespace
} // namespace deft::kernels
