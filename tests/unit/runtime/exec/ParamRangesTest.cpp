#include "runtime/exec/ParamRanges.h"

#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

using plan::ParamRange;
using spec::Builtin;
using spec::ExprOp;
using spec::Param;
using spec::ScalarType;

TEST(ParamRangesTest, RangesHoldAllElementsOfIntegersAndNothingElse) {
  test::VariantBuilder builder;
  builder.param("scalar", ScalarType::I32, Param::Shape::Scalar);
  builder.param("heads", ScalarType::I32, Param::Shape::PerQueryHead);
  builder.param("cap", ScalarType::F32, Param::Shape::Scalar);
  builder.param("on_device", ScalarType::I32, Param::Shape::PerKvHead);
  builder.param("missing", ScalarType::I32, Param::Shape::Scalar);
  std::vector<ParamValue> values(4);
  values[0].i32 = {-7};
  values[1].i32 = {3, 2147483647, -2147483647 - 1, 0};
  values[2].f32 = {1.5F};
  const int somewhere = 0;
  values[3].device = &somewhere;
  const plan::ParamRanges ranges = rangesOf(builder.variant, values);
  ASSERT_EQ(ranges.size(), 5U);
  EXPECT_EQ(ranges[0], (ParamRange{-7, -7}));
  EXPECT_EQ(ranges[1], (ParamRange{-2147483648LL, 2147483647}));
  for (std::size_t unknown : {2, 3, 4})
    EXPECT_EQ(ranges[unknown], std::nullopt) << unknown;
}

/// A window of one width for each head: the widest one's beginning is the bound.
TEST(ParamRangesTest, AWindowReachesAsFarAsTheWidestHead) {
  test::VariantBuilder builder;
  const int width = builder.param("width", ScalarType::I32, Param::Shape::PerQueryHead);
  const auto first =
      builder.op(ExprOp::Sub, ScalarType::I32, {builder.read(Builtin::QPos), builder.readParam(width)});
  builder.variant.mask = builder.op(ExprOp::Gt, ScalarType::Bool, {builder.read(Builtin::KvPos), first});
  std::vector<ParamValue> values(1);
  for (const auto &[a, b] : {std::pair(10, 30), {30, 10}, {1, 1}}) {
    values[0].i32 = {a, b};
    const plan::Reach reach = reachOf(builder.variant, values);
    EXPECT_EQ(reach.firstFrom(100, 0), 100 - std::max(a, b) + 1);
    EXPECT_TRUE(reach.hasRisingStart());
  }
  values[0] = {};
  EXPECT_TRUE(reachOf(builder.variant, values).isAll()) << "nobody on the host knows the widths";
}

} // namespace
} // namespace deft::exec
