#include "tuner/search/TypicalKernels.h"

#include "compiler/config/DevicePrices.h"
#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

namespace deft::search {
namespace {

using space::Point;
using space::Space;

Space spaceOf(const target::Target *target, const std::vector<std::string> &overrides = {}) {
  spec::Variant variant;
  variant.name = "test";
  variant.queryHeads = 32;
  variant.kvHeads = 8;
  variant.tensors = spec::Tensors::alike(128);
  std::vector<space::AxisOverride> changes;
  for (const std::string &text : overrides)
    changes.push_back(*space::parseOverride(text));
  return *space::makeSpace(variant, {target, config::CostCoefficients()}, changes);
}

const target::Target &hopper() { return *target::findTarget("sm_90a"); }

/// What plans follow from: the rows of each phase, and where it begins.
std::vector<std::pair<int, int>> rowsOf(const Space &space, const Point &point) {
  std::vector<std::pair<int, int>> rows;
  for (const config::PhaseConfig &phase : space.configOf(point).phases)
    rows.emplace_back(phase.tileQ, phase.rowsAbove);
  return rows;
}

TEST(TypicalKernelsTest, FewKernelsAreAllTypical) {
  const Space space = spaceOf(nullptr);
  for (int shape = 0; shape < std::ssize(space.shapes()); ++shape) {
    ASSERT_LE(space.kernelsOf(shape).size(), 16U);
    EXPECT_EQ(typicalKernels(space, shape), space.kernelsOf(shape));
  }
}

TEST(TypicalKernelsTest, OfManyThereIsOneForEachWayToSetRowsTheLeastOddOne) {
  const Space space = spaceOf(&hopper());
  int many = 0;
  for (int shape = 0; shape < std::ssize(space.shapes()); ++shape) {
    const std::vector<Point> all = space.kernelsOf(shape);
    if (all.size() <= 16)
      continue;
    ++many;
    std::map<std::vector<std::pair<int, int>>, double> least;
    for (const Point &point : all) {
      const double odd = oddness(space, point);
      const auto [found, isNew] = least.try_emplace(rowsOf(space, point), odd);
      found->second = std::min(found->second, odd);
    }
    const std::vector<Point> typical = typicalKernels(space, shape);
    EXPECT_LT(typical.size(), all.size());
    EXPECT_EQ(typical.size(), least.size());
    for (const Point &point : typical)
      EXPECT_EQ(oddness(space, point), least.at(rowsOf(space, point)));
  }
  EXPECT_GT(many, 0);
}

TEST(TypicalKernelsTest, ADeeperRingIsLessOdd) {
  const Space space = spaceOf(&hopper(), {"shape=sm80", "tile_q=64", "tile_kv=64", "warps=4", "stages=2,3"});
  double oddnessOf[2] = {0, 0};
  for (int shape = 0; shape < std::ssize(space.shapes()); ++shape)
    for (const Point &point : space.kernelsOf(shape)) {
      const config::Config config = space.configOf(point);
      if (config.phases.size() == 1)
        oddnessOf[config.phases[0].stages - 2] = oddness(space, point);
    }
  EXPECT_LT(oddnessOf[1], oddnessOf[0]);
}

} // namespace
} // namespace deft::search
