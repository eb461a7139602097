/// What an operation is said to depend on, against what its value changes with.

#include "compiler/transforms/Uniformity.h"

#include "tests/support/RandomExpr.h"
#include "tests/unit/compiler/transforms/HookTesting.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace deft::transforms {
namespace {

using test::ImportedHooks;
using test::Scalar;

bool dependsOn(Uniformity of, Uniformity what) {
  return (static_cast<unsigned>(of) & static_cast<unsigned>(what)) != 0;
}

TEST(UniformityTest, NothingChangesThatIsSaidToBeTheSame) {
  std::mt19937 random(31);
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  int same = 0, changed = 0;
  for (int turn = 0; turn < 200; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    test::VariantBuilder builder(8, 4, 64);
    test::RandomExpr expressions(builder, random, /*withScore=*/true);
    builder.variant.score = expressions.real(4);
    ImportedHooks hooks(builder.variant);
    mlir::Region &score = hooks.attention.getScore();
    const UniformityAnalysis uniformity(score);
    std::vector<mlir::Value> values;
    for (mlir::Operation &op : score.front())
      values.insert(values.end(), op.result_begin(), op.result_end());
    score.front().getTerminator()->setOperands(values); // to see all of them
    test::ParamValues params;
    for (const spec::Param &param : builder.variant.params)
      for (int i = 0; i < std::max(8, param.size); ++i)
        params[param.name].push_back({pick(-6, 12), static_cast<float>(pick(-20, 20)) / 4});
    test::RegionInterpreter interpreter(score, params);
    std::vector<Scalar> row{{0, 0}, {pick(0, 40), 0}, {0, 0},         {pick(4, 5), 0},
                            {2, 0}, {0, 0},           {pick(0, 9), 0}};
    for (int call = 0; call < 10; ++call) {
      const auto run = [&](bool changesRow, bool changesToken) {
        std::vector<Scalar> arguments = row;
        if (changesRow) {
          arguments[dialect::kArgQPos].integer += pick(1, 5);
          arguments[dialect::kArgHead].integer = pick(4, 5); // of the same KV head
          arguments[dialect::kArgQuery].integer += pick(1, 5);
        }
        if (changesToken) {
          arguments[dialect::kArgKvPos].integer += pick(1, 30);
          arguments[dialect::kArgDepth].integer += pick(1, 3);
        }
        if (changesRow || changesToken)
          arguments[dialect::kArgS].real += static_cast<float>(pick(1, 9)) / 4;
        return interpreter.run(arguments);
      };
      const std::vector<Scalar> before = run(false, false), ofToken = run(false, true),
                                ofRow = run(true, false);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto isSame = [&](const Scalar &a, const Scalar &b) {
          return a.integer == b.integer &&
                 std::bit_cast<std::uint32_t>(a.real) == std::bit_cast<std::uint32_t>(b.real);
        };
        const Uniformity of = uniformity.of(values[i]);
        EXPECT_TRUE(dependsOn(of, Uniformity::Column) || isSame(before[i], ofToken[i])) << i;
        EXPECT_TRUE(dependsOn(of, Uniformity::Row) || isSame(before[i], ofRow[i])) << i;
        same += of != Uniformity::Pair;
        changed += !isSame(before[i], ofToken[i]) || !isSame(before[i], ofRow[i]);
      }
    }
  }
  EXPECT_GT(same, 1000);
  EXPECT_GT(changed, 1000);
}

TEST(UniformityTest, LeavesAreWhatTheyAreReadBy) {
  ImportedHooks hooks("param cap : f32; param slope : f32[query_heads]; param rate : i32[kv_heads];"
                      "score = s * cap + slope[head] + rate[kv_head];",
                      /*isOptimised=*/false);
  const UniformityAnalysis uniformity(hooks.attention.getScore());
  std::map<std::string, Uniformity> params;
  for (mlir::Operation &op : hooks.attention.getScore().front()) {
    if (auto param = mlir::dyn_cast<dialect::ParamOp>(op))
      params[param.getName().str()] = uniformity.of(param.getResult());
    if (auto element = mlir::dyn_cast<dialect::ParamElementOp>(op))
      params[element.getName().str()] = uniformity.of(element.getResult());
  }
  EXPECT_EQ(params.at("cap"), Uniformity::Launch);
  EXPECT_EQ(params.at("slope"), Uniformity::Row);
  EXPECT_EQ(params.at("rate"), Uniformity::Launch) << "a kernel has one KV head at a time";
}

} // namespace
} // namespace deft::transforms
