#include "runtime/exec/RandomInputs.h"

#include "runtime/exec/Half.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace deft::exec {
namespace {

Inputs make(const spec::Variant &variant, tree::KvTree &tree, tree::PlacementOrder order,
            std::uint64_t seed) {
  tree::PlacementOptions options;
  options.pageSize = variant.cache.pageSize;
  options.order = order;
  const auto placement = tree::placeInCache(tree, options);
  return makeRandomInputs(variant, tree, *placement, {}, seed);
}

TEST(RandomInputsTest, AboutUnitNormal) {
  test::VariantBuilder build(8, 4, 64);
  for (spec::DType dtype : {spec::DType::F16, spec::DType::BF16}) {
    build.variant.tensors = spec::Tensors::alike(4, dtype);
    tree::KvTree tree = test::levelTree({1}, {400});
    const Inputs inputs = make(build.variant, tree, tree::PlacementOrder::InOrder, 1);
    double sum = 0, squares = 0;
    for (std::uint16_t bits : inputs.k) {
      sum += toFloat(bits, dtype);
      squares += std::pow(toFloat(bits, dtype), 2);
    }
    const double count = static_cast<double>(inputs.k.size());
    EXPECT_NEAR(sum / count, 0, 0.02);
    EXPECT_NEAR(squares / count, 1, 0.02);
  }
}

TEST(RandomInputsTest, TheSeedAndTheTensorDecide) {
  test::VariantBuilder build(8, 4, 64);
  tree::KvTree tree = test::levelTree({1, 2}, {40, 10});
  const Inputs a = make(build.variant, tree, tree::PlacementOrder::InOrder, 1);
  const Inputs again = make(build.variant, tree, tree::PlacementOrder::InOrder, 1);
  const Inputs other = make(build.variant, tree, tree::PlacementOrder::InOrder, 2);
  EXPECT_EQ(a.q, again.q);
  EXPECT_EQ(a.v, again.v);
  EXPECT_NE(a.q, other.q);
  EXPECT_NE(a.k, other.k);
  EXPECT_NE(a.k, a.v);
}

TEST(RandomInputsTest, SlotsWithoutATokenHoldNaN) {
  test::VariantBuilder build(2, 1, 8);
  tree::KvTree tree = test::levelTree({1, 3}, {21, 9});
  const Inputs inputs = make(build.variant, tree, tree::PlacementOrder::Scattered, 1);
  std::size_t numbers = 0;
  for (std::uint16_t bits : inputs.k)
    numbers += !std::isnan(floatFromBf16(bits));
  EXPECT_EQ(numbers, 8u * (21 + 3 * 9));
  EXPECT_GT(inputs.k.size(), numbers);
}

TEST(RandomInputsTest, ParameterSlotsPointIntoTheInputs) {
  test::VariantBuilder build(4, 2);
  build.param("cap", spec::ScalarType::F32, spec::Param::Shape::Scalar);
  build.param("slope", spec::ScalarType::F32, spec::Param::Shape::PerQueryHead);
  build.param("window", spec::ScalarType::I32, spec::Param::Shape::Scalar);
  build.param("step", spec::ScalarType::I32, spec::Param::Shape::PerKvHead);
  Inputs inputs;
  inputs.params = {{{30}, {}}, {{0, 1, 2, 3}, {}}, {{}, {-5}}, {{}, {8, 9}}};
  const auto slots = inputs.paramSlots(build.variant);
  EXPECT_EQ(slots[0].f32, 30);
  EXPECT_EQ(slots[1].f32Array, inputs.params[1].f32.data());
  EXPECT_EQ(slots[2].i32, -5);
  EXPECT_EQ(slots[3].i32Array[1], 9);
}

} // namespace
} // namespace deft::exec
