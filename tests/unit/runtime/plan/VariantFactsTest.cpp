#include "runtime/plan/VariantFacts.h"

#include "tests/support/LatentTensors.h"

#include <gtest/gtest.h>

namespace deft::plan {
namespace {

/// 128 heads over a latent cache of 512 and 64 columns.
spec::Variant latent() {
  spec::Variant variant;
  variant.queryHeads = 128;
  variant.kvHeads = 1;
  variant.tensors = test::latentTensors();
  return variant;
}

TEST(VariantFactsTest, OnAGpuGroupsOfHeadsAreUnitsOfALatentCache) {
  const VariantFacts facts = VariantFacts::of(latent());
  EXPECT_EQ(facts.headGroups, 2);
  EXPECT_EQ(facts.kvHeads, 2);
  EXPECT_EQ(facts.ratio, 64);
  const VariantFacts ofCpu = VariantFacts::of(latent(), config::DeviceKind::Cpu);
  EXPECT_EQ(ofCpu.headGroups, 1);
  EXPECT_EQ(ofCpu.kvHeads, 1);
  EXPECT_EQ(ofCpu.ratio, 128);
}

TEST(VariantFactsTest, ATokenHasItsBytesOnceWhoeverReadsThem) {
  EXPECT_EQ(VariantFacts::of(latent()).tokenBytes(), 1152);
  EXPECT_EQ(VariantFacts::of(latent(), config::DeviceKind::Cpu).tokenBytes(), 1152);
  spec::Variant apart = latent();
  apart.tensors.valueInKey = false;
  EXPECT_EQ(VariantFacts::of(apart).headGroups, 1);
  EXPECT_EQ(VariantFacts::of(apart).tokenBytes(), 1152 + 1024);
  apart.kvHeads = 8;
  EXPECT_EQ(VariantFacts::of(apart).tokenBytes(), 8 * (1152 + 1024));
}

} // namespace
} // namespace deft::plan
