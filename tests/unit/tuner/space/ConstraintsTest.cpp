#include "tuner/space/Constraints.h"

#include "compiler/target/Target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

namespace deft::space {
namespace {

/// 64 query heads over 8 of K and V, and a wide and a narrow phase that an A100 runs well.
struct Setting {
  kernels::KernelShape shape;
  const target::Target *target = target::findTarget("sm_80");
  config::Config config;
  int prices = 0;

  Setting() {
    spec::Variant variant;
    variant.queryHeads = 64;
    variant.kvHeads = 8;
    variant.tensors = spec::Tensors::alike(128);
    shape = kernels::KernelShape::of(variant);
    config.partition = spec::Partition::Greedy;
    config.phases = {{"wide", 16, config::Family::Sm80, 64, 64, 2, 4},
                     {"narrow", -1, config::Family::Sm80, 16, 64, 2, 4}};
  }
  std::string broken(bool ofPlan = true, bool ofPhases = true) const {
    const char *name = brokenConstraint({shape, target, config, prices}, ofPlan, ofPhases);
    return name ? name : "";
  }
};

std::string brokenBy(const std::function<void(Setting &)> &damage) {
  Setting setting;
  EXPECT_EQ(setting.broken(), "");
  damage(setting);
  return setting.broken();
}

TEST(ConstraintsTest, ATileHoldsAllRowsOfAQuery) {
  EXPECT_EQ(brokenBy([](Setting &s) {
              s.config.phases = {{"tiles", -1, config::Family::Cpu, 4, 64, 2, 1}};
              s.target = nullptr;
            }),
            "rows of a query");
}

TEST(ConstraintsTest, ABoundaryLeavesBothPhasesItemsThatFitThem) {
  for (const int rowsAbove :
       {64, 32, 4}) // none is left for wide; too many, or less than a query's, for narrow
    EXPECT_EQ(brokenBy([&](Setting &s) { s.config.phases[0].rowsAbove = rowsAbove; }), "boundary")
        << rowsAbove;
  EXPECT_EQ(brokenBy([](Setting &s) { s.config.phases[1].tileQ = 64; }), "boundary");
}

TEST(ConstraintsTest, AMultiprocessorRunsAtLeastFourWarps) {
  EXPECT_EQ(
      brokenBy([](Setting &s) { s.config.phases = {{"tiles", -1, config::Family::Sm80, 16, 64, 3, 2}}; }),
      "occupancy");
}

TEST(ConstraintsTest, OtherPricesMatterToPartitionsThatCompareAlone) {
  EXPECT_EQ(brokenBy([](Setting &s) { s.prices = 1; }), "");
  EXPECT_EQ(brokenBy([](Setting &s) {
              s.prices = 1;
              s.config.partition = spec::Partition::Node;
            }),
            "prices");
}

TEST(ConstraintsTest, AKernelThatIsNotLegalIsNamedByItsRule) {
  EXPECT_EQ(brokenBy([](Setting &s) { s.config.phases[0].stages = 8; }), "shared memory");
}

TEST(ConstraintsTest, ThePlansHalfAndTheKernelsAreLookedAtApart) {
  Setting setting;
  setting.prices = 1;
  setting.config.partition = spec::Partition::Node;
  setting.config.phases[1].tileQ = 64;
  EXPECT_EQ(setting.broken(/*ofPlan=*/true, /*ofPhases=*/false), "prices");
  EXPECT_EQ(setting.broken(/*ofPlan=*/false, /*ofPhases=*/true), "boundary");
  EXPECT_EQ(setting.broken(/*ofPlan=*/false, /*ofPhases=*/false), "");
}

TEST(ConstraintsTest, EachHasANameOfItsOwnAndAReason) {
  std::set<std::string> names;
  for (const Constraint &constraint : constraints()) {
    EXPECT_TRUE(names.insert(constraint.name).second) << constraint.name;
    EXPECT_NE(std::string(constraint.why), "");
  }
}

} // namespace
} // namespace deft::space
