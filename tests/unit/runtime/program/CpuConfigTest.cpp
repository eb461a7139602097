#include "runtime/program/CpuConfig.h"

#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/Legality.h"

#include <gtest/gtest.h>

namespace deft::program {
namespace {

spec::Variant someVariant() {
  spec::Variant variant;
  variant.name = "test";
  variant.queryHeads = 32;
  variant.kvHeads = 8;
  variant.tensors = spec::Tensors::alike(128);
  return variant;
}

TEST(CpuConfigTest, PartitionsAreComparedWhereTheSpecNamesNone) {
  spec::Variant variant = someVariant();
  EXPECT_EQ(cpuConfig(variant, 4)->partition, spec::Partition::Auto);
  variant.schedule.emplace();
  variant.schedule->chunk = spec::TuneList{{512}, false, {}};
  EXPECT_EQ(cpuConfig(variant, 4)->partition, spec::Partition::Auto);
  EXPECT_EQ(cpuConfig(variant, 4)->chunkTokens, 512);
  variant.schedule->partitions = {spec::Partition::Cascade, spec::Partition::Node};
  EXPECT_EQ(cpuConfig(variant, 4)->partition, spec::Partition::Cascade);
}

TEST(CpuConfigTest, PricesAreThoseOfSoManyThreads) {
  for (const int threads : {1, 3, 64})
    EXPECT_EQ(cpuConfig(someVariant(), threads)->cost, config::processorPrices(threads)) << threads;
  EXPECT_NE(cpuConfig(someVariant(), 1)->cost, cpuConfig(someVariant(), 64)->cost);
}

TEST(CpuConfigTest, EveryRatioGetsPhasesThatACpuRuns) {
  for (const int kvHeads : {1, 2, 8, 32}) {
    spec::Variant variant = someVariant();
    variant.kvHeads = kvHeads;
    const auto config = cpuConfig(variant, 2);
    ASSERT_TRUE(config) << config.error().message;
    const auto legal = kernels::checkConfig(kernels::KernelShape::of(variant), *config, nullptr);
    EXPECT_TRUE(legal) << legal.error().message;
  }
}

TEST(CpuConfigTest, AScheduleThatNoCpuRunsIsAnError) {
  spec::Variant variant = someVariant();
  variant.schedule.emplace();
  spec::PhaseSpec phase;
  phase.name = "tiny";
  phase.tileQ = spec::TuneList{{2}, false, {}}; // and a query has 4 rows
  variant.schedule->phases = {phase};
  EXPECT_FALSE(cpuConfig(variant, 2));
}

} // namespace
} // namespace deft::program
