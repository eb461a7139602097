#include "tests/unit/compiler/codegen/cpu/KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace deft::test {

using spec::Builtin;
using spec::DType;
using spec::ExprOp;
using spec::ScalarType;

static spec::Param parameter(ScalarType type, spec::Param::Shape shape) {
  spec::Param param;
  param.name = "p" + std::to_string(static_cast<int>(type) * 3 + static_cast<int>(shape));
  param.type = type;
  param.shape = shape;
  return param;
}

TEST(CpuKernelTest, EveryHeadDimInBothTypes) {
  for (DType dtype : {DType::BF16, DType::F16})
    for (int headDim = 16; headDim <= 256; headDim += 16) {
      SCOPED_TRACE("head_dim " + std::to_string(headDim) + (dtype == DType::F16 ? " f16" : " bf16"));
      const spec::Variant variant = plainVariant(headDim, dtype);
      Kernel kernel = jitKernel(variant);
      ASSERT_TRUE(kernel);
      EXPECT_EQ(kernel->keyDim, headDim);
      expectMatches(*kernel, variant, {.rows = 7, .tokens = 150, .range = 4}, {});
    }
}

TEST(CpuKernelTest, KeysAndValuesHaveDimsAndTypesOfTheirOwn) {
  const DType bf16 = DType::BF16, f16 = DType::F16;
  for (const auto &[keyDim, valueDim] : {std::pair(192, 128), std::pair(16, 80), std::pair(576, 512)})
    for (const auto &[q, k, v, out] : {std::tuple(bf16, bf16, bf16, bf16), std::tuple(bf16, f16, bf16, f16),
                                       std::tuple(bf16, bf16, f16, bf16), std::tuple(f16, f16, bf16, bf16)}) {
      spec::Variant variant = plainVariant(keyDim);
      variant.tensors = {{q, keyDim}, {k, keyDim}, {v, valueDim}, {out, valueDim}};
      SCOPED_TRACE(spec::dimText(variant.tensors) + ", " + spec::dtypeText(variant.tensors));
      Kernel kernel = jitKernel(variant);
      ASSERT_TRUE(kernel);
      EXPECT_EQ(kernel->keyDim, keyDim);
      EXPECT_EQ(kernel->valueDim, valueDim);
      for (int rows : {1, 7})
        expectMatches(*kernel, variant, {.rows = rows, .tokens = 150, .range = 2}, {});
    }
}

TEST(CpuKernelTest, EveryCountOfRowsAndTokens) {
  const spec::Variant variant = plainVariant(64);
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  for (int rows = 1; rows <= 17; ++rows)
    for (int tokens : {1, 2, 3, 4, 5, 15, 16, 17, 31, 63, 64, 65, 128, 130}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(tokens) + " tokens");
      expectMatches(*kernel, variant,
                    {.rows = rows, .tokens = tokens, .seed = unsigned(rows * 1000 + tokens)}, {});
    }
}

TEST(CpuKernelTest, ACallAddsUpARowTheSameWayWhoeverSharesIt) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    const spec::Variant variant = plainVariant(128, dtype);
    Kernel kernel = jitKernel(variant);
    ASSERT_TRUE(kernel);
    const Results alone = runKernel(*kernel, variant, {.rows = 1, .tokens = 130, .range = 4});
    for (int rows : {2, 3, 4, 5, 9}) {
      SCOPED_TRACE(std::to_string(rows) + " rows");
      const Results run = runKernel(*kernel, variant, {.rows = rows, .tokens = 130, .range = 4});
      EXPECT_EQ(std::vector(run.partial.out.begin(), run.partial.out.begin() + 128), alone.partial.out);
      EXPECT_EQ(run.partial.lse[0], alone.partial.lse[0]);
    }
  }
}

TEST(CpuKernelTest, PackagedLevelsMatchAtEveryHeadDim) {
  auto host = codegen::cpu::CpuTarget::host();
  ASSERT_TRUE(host.ok());
  for (int level = 3; level <= host->isaLevel; ++level) {
    auto target = codegen::cpu::CpuTarget::level(level);
    ASSERT_TRUE(target.ok());
    for (int headDim : {16, 64, 80, 96, 112, 128, 176, 192, 256})
      for (DType dtype : {DType::BF16, DType::F16}) {
        SCOPED_TRACE("level " + std::to_string(level) + ", head_dim " + std::to_string(headDim));
        const spec::Variant variant = plainVariant(headDim, dtype);
        Kernel kernel = objectKernel(variant, *target);
        ASSERT_TRUE(kernel);
        EXPECT_EQ(kernel->isaLevel, level);
        for (int rows : {1, 2, 5})
          expectMatches(*kernel, variant, {.rows = rows, .tokens = 70}, {});
      }
  }
}

TEST(CpuKernelTest, TokensOfManyRunsEachForAnIntervalOfRows) {
  // A root, a token for each row, tokens that nobody sees, two halves; in one block and over several.
  auto interval = [](int t) {
    if (t < 20)
      return std::pair(0, 100);
    if (t < 40)
      return std::pair(t - 20, t - 19);
    if (t < 47)
      return std::pair(5, 5);
    return t % 3 == 0 ? std::pair(0, 9) : std::pair(9, 100);
  };
  auto host = codegen::cpu::CpuTarget::host();
  ASSERT_TRUE(host.ok());
  const spec::Variant variant = plainVariant(48);
  std::vector<Kernel> kernels = {jitKernel(variant)};
  for (int level = 3; level <= host->isaLevel; ++level)
    kernels.push_back(objectKernel(variant, *codegen::cpu::CpuTarget::level(level)));
  for (const Kernel &kernel : kernels) {
    ASSERT_TRUE(kernel);
    for (int rows : {1, 3, 4, 5, 8, 11, 21, 33})
      for (int tokens : {1, 22, 41, 64, 90, 150}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(tokens) + " tokens");
        expectMatches(*kernel, variant, {.rows = rows, .tokens = tokens, .interval = interval}, {});
      }
  }
}

TEST(CpuKernelTest, RowsThatSeeNoTokenOfABlockKeepTheirState) {
  const spec::Variant variant = plainVariant(64);
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  for (int first : {0, 1}) { // the empty block comes first, or second
    const auto interval = [&](int t) { return t / 64 == first ? std::pair(8, 16) : std::pair(0, 16); };
    expectMatches(*kernel, variant, {.rows = 16, .tokens = 128, .interval = interval}, {});
  }
}

TEST(CpuKernelTest, MaskArithmeticIsRoundedStepByStep) {
  // p * p - q with p = 1 + 2^-12 and q = 1 + 2^-11: 0 when the product is rounded, 2^-24 in one fused step.
  spec::Variant variant = plainVariant(32);
  variant.params = {parameter(ScalarType::F32, spec::Param::Shape::Scalar),
                    parameter(ScalarType::F32, spec::Param::Shape::PerQueryHead)};
  Exprs x(variant);
  auto whole = x.f32(ExprOp::Mul, {x.op(ExprOp::ToF32, ScalarType::F32, {x.builtin(Builtin::KvPos)}),
                                   x.constant(0)}); // 0, but only a loop over tokens knows
  auto p = x.f32(ExprOp::Add, {x.param(0), whole});
  auto rest = x.f32(ExprOp::Sub, {x.f32(ExprOp::Mul, {p, p}), x.element(1)});
  variant.mask = x.op(ExprOp::Gt, ScalarType::Bool, {rest, x.constant(0)});
  auto host = codegen::cpu::CpuTarget::host();
  ASSERT_TRUE(host.ok());
  std::vector<Kernel> kernels = {jitKernel(variant)};
  for (int level = 3; level <= host->isaLevel; ++level)
    kernels.push_back(objectKernel(variant, *codegen::cpu::CpuTarget::level(level)));
  for (const Kernel &kernel : kernels) {
    ASSERT_TRUE(kernel);
    const float q[] = {1 + 0x1p-11f, 1 - 0x1p-11f}; // head 0 sees nothing, head 1 all
    Case c{.rows = 4, .tokens = 30};
    c.params.resize(2);
    c.params[0].f32 = 1 + 0x1p-12f;
    c.params[1].f32Array = q;
    expectMatches(*kernel, variant, c, {[](int row, int) { return Case::head(row) == 1; }, nullptr});
  }
}

TEST(CpuKernelTest, MaskHidesAndMayBeSkipped) {
  spec::Variant variant = plainVariant(64);
  Exprs x(variant);
  // kv_pos > q_pos - 60
  auto low = x.op(ExprOp::Sub, ScalarType::I32, {x.builtin(Builtin::QPos), x.constant(60, ScalarType::I32)});
  variant.mask = x.op(ExprOp::Gt, ScalarType::Bool, {x.builtin(Builtin::KvPos), low});
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->hasMask, 1);
  const auto window = [](int row, int kvPos) { return kvPos > Case::qPos(row) - 60; };
  expectMatches(*kernel, variant, {.rows = 6, .tokens = 140}, {window, nullptr});
  expectMatches(*kernel, variant, {.rows = 6, .tokens = 140, .masked = false}, {});
}

TEST(CpuKernelTest, RowThatSeesNothingIsEmpty) {
  spec::Variant variant = plainVariant(32);
  Exprs x(variant);
  variant.mask = x.op(ExprOp::Lt, ScalarType::Bool,
                      {x.builtin(Builtin::QPos), x.constant(Case::qPos(2), ScalarType::I32)});
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  const auto firstTwo = [](int row, int) { return row < 2; };
  expectMatches(*kernel, variant, {.rows = 5, .tokens = 80}, {firstTwo, nullptr});
  const Results run = runKernel(*kernel, variant, {.rows = 3, .tokens = 80});
  EXPECT_EQ(run.output.lse[2], -std::numeric_limits<double>::infinity());
  for (int d = 0; d < 32; ++d)
    EXPECT_EQ(run.output.out[64 + d], 0);
}

TEST(CpuKernelTest, TokensThatComeLateAfterHiddenBlocks) {
  spec::Variant variant = plainVariant(32);
  Exprs x(variant);
  variant.mask =
      x.op(ExprOp::Ge, ScalarType::Bool, {x.builtin(Builtin::KvPos), x.constant(130, ScalarType::I32)});
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  expectMatches(*kernel, variant, {.rows = 3, .tokens = 200},
                {[](int, int kvPos) { return kvPos >= 130; }, nullptr});
}

TEST(CpuKernelTest, ScoreOfMinusInfinityHides) {
  spec::Variant variant = plainVariant(48);
  Exprs x(variant);
  // kv_pos % 3 == 0 ? -inf : s, the infinity as log(0)
  auto rest = x.op(ExprOp::Rem, ScalarType::I32, {x.builtin(Builtin::KvPos), x.constant(3, ScalarType::I32)});
  auto hit = x.op(ExprOp::Eq, ScalarType::Bool, {rest, x.constant(0, ScalarType::I32)});
  auto infinity = x.f32(ExprOp::Log, {x.constant(0)});
  variant.score = x.f32(ExprOp::Select, {hit, infinity, x.builtin(Builtin::S)});
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  const auto mask = [](int, int kvPos) { return kvPos % 3 != 0; };
  expectMatches(*kernel, variant, {.rows = 4, .tokens = 99}, {mask, nullptr});
  expectMatches(*kernel, variant, {.rows = 2, .tokens = 1}, {mask, nullptr});
}

TEST(CpuKernelTest, LargeScoresStayFinite) {
  const spec::Variant variant = plainVariant(128);
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  spec::Variant steep = variant;
  steep.scale = 40;
  Kernel steepKernel = jitKernel(steep);
  ASSERT_TRUE(steepKernel);
  const Results run = runKernel(*steepKernel, steep, {.rows = 4, .tokens = 130, .range = 100});
  const Answer expected = inDoubles(steep, {.rows = 4, .tokens = 130, .range = 100}, {});
  EXPECT_LE(relativeError(run.output.out, expected.out), 0x1p-8);
  for (double lse : run.output.lse)
    EXPECT_TRUE(std::isfinite(lse));
}

TEST(CpuKernelTest, ScoreReadsEveryNameAndParameter) {
  spec::Variant variant = plainVariant(64);
  variant.params = {parameter(ScalarType::F32, spec::Param::Shape::Scalar),
                    parameter(ScalarType::I32, spec::Param::Shape::Scalar),
                    parameter(ScalarType::F32, spec::Param::Shape::PerQueryHead),
                    parameter(ScalarType::I32, spec::Param::Shape::PerKvHead)};
  Exprs x(variant);
  auto weigh = [&](spec::ExprId integer, double factor) {
    return x.f32(ExprOp::Mul, {x.op(ExprOp::ToF32, ScalarType::F32, {integer}), x.constant(factor)});
  };
  auto sum = x.f32(ExprOp::Add, {x.builtin(Builtin::S), x.param(0)});
  sum = x.f32(ExprOp::Add, {sum, weigh(x.param(1), 0.25)});
  sum = x.f32(ExprOp::Add, {sum, x.element(2)});
  sum = x.f32(ExprOp::Add, {sum, weigh(x.element(3), 0.125)});
  const std::pair<Builtin, double> names[] = {{Builtin::QPos, 0.01},    {Builtin::KvPos, -0.03},
                                              {Builtin::Head, 0.5},     {Builtin::KvHead, 0.75},
                                              {Builtin::Depth, -0.125}, {Builtin::Query, 0.0625}};
  for (auto [name, factor] : names)
    sum = x.f32(ExprOp::Add, {sum, weigh(x.builtin(name), factor)});
  variant.score = sum;
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->paramCount, 4);

  const float slopes[] = {0.5f, -1.5f};
  const int offsets[] = {9, -4};
  Case c{.rows = 5, .tokens = 77, .kvPos = 20, .depth = 6, .kvHead = 1};
  c.params.resize(4);
  c.params[0].f32 = 1.5f;
  c.params[1].i32 = -7;
  c.params[2].f32Array = slopes;
  c.params[3].i32Array = offsets;
  expectMatches(*kernel, variant, c, {nullptr, [&](int row, int kvPos, double s) {
                                        return s + 1.5 - 7 * 0.25 + slopes[Case::head(row)] +
                                               offsets[1] * 0.125 + Case::qPos(row) * 0.01 - kvPos * 0.03 +
                                               Case::head(row) * 0.5 + 0.75 - 6 * 0.125 +
                                               Case::query(row) * 0.0625;
                                      }});
}

TEST(CpuKernelTest, ScoreUsesEveryFunction) {
  spec::Variant variant = plainVariant(64);
  Exprs x(variant);
  auto s = x.builtin(Builtin::S);
  auto one = x.constant(1);
  auto absolute = x.f32(ExprOp::Add, {x.f32(ExprOp::Abs, {s}), one});
  auto sum = x.f32(ExprOp::Tanh, {s});
  for (auto term : {x.f32(ExprOp::Exp, {s}), x.f32(ExprOp::Exp2, {s}), x.f32(ExprOp::Log, {absolute}),
                    x.f32(ExprOp::Log2, {absolute}), x.f32(ExprOp::Sigmoid, {s}),
                    x.f32(ExprOp::Sqrt, {absolute}), x.f32(ExprOp::Rsqrt, {absolute}),
                    x.f32(ExprOp::Min, {s, one}), x.f32(ExprOp::Max, {s, one}), x.f32(ExprOp::Neg, {s}),
                    x.f32(ExprOp::Div, {one, absolute}), x.f32(ExprOp::Sin, {s}), x.f32(ExprOp::Cos, {s})})
    sum = x.f32(ExprOp::Add, {sum, term});
  variant.score = sum;
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  expectMatches(*kernel, variant, {.rows = 6, .tokens = 90, .range = 3},
                {nullptr, [](int, int, double s) {
                   const double a = std::fabs(s) + 1;
                   return std::tanh(s) + std::exp(s) + std::exp2(s) + std::log(a) + std::log2(a) +
                          1 / (1 + std::exp(-s)) + std::sqrt(a) + 1 / std::sqrt(a) + std::min(s, 1.0) +
                          std::max(s, 1.0) - s + 1 / a + std::sin(s) + std::cos(s);
                 }});
}

TEST(CpuKernelTest, SigmoidSumsWithoutNormalising) {
  spec::Variant variant = plainVariant(80);
  variant.normalize = spec::Normalize::Sigmoid;
  variant.withLse = false;
  Exprs x(variant);
  variant.sigmoidBias = x.constant(-1.5);
  variant.mask = x.op(ExprOp::Le, ScalarType::Bool, {x.builtin(Builtin::KvPos), x.builtin(Builtin::QPos)});
  Kernel kernel = jitKernel(variant);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->sigmoid, 1);
  expectMatches(*kernel, variant, {.rows = 9, .tokens = 131},
                {[](int row, int kvPos) { return kvPos <= Case::qPos(row); },
                 [](int, int, double s) { return s - 1.5; }});
}

TEST(CpuKernelTest, TileWithoutAnalysisSaysOnlyWhatIsCertain) {
  spec::Variant open = plainVariant(16), masked = plainVariant(16);
  Exprs x(masked);
  masked.mask = x.op(ExprOp::Le, ScalarType::Bool, {x.builtin(Builtin::KvPos), x.builtin(Builtin::QPos)});
  const abi::CpuTileCall call{};
  Kernel openKernel = jitKernel(open), maskedKernel = jitKernel(masked);
  ASSERT_TRUE(openKernel && maskedKernel);
  EXPECT_EQ(openKernel->tile(&call), abi::kCpuTileAny | abi::kCpuTileAll);
  EXPECT_EQ(maskedKernel->tile(&call), abi::kCpuTileAny);
}

TEST(CpuKernelTest, NarrowingRoundsToNearestEven) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    spec::Variant variant = plainVariant(16, dtype);
    Kernel kernel = jitKernel(variant);
    ASSERT_TRUE(kernel);
    std::vector<float> acc{
        1.0f,  1.00390625f, 1.01171875f, 1.00048828125f, 1.00146484375f, -2.5f,      0.0f,   -0.0f,
        1e-7f, -3e-6f,      6e-8f,       65504.0f,       100.3f,         -0.333333f, 1e-40f, 0.1f};
    const auto finished = [&](const std::vector<float> &sums) {
      const float m = 0, l = 1;
      std::vector<std::uint16_t> out(16);
      const abi::CpuFinishCall call{sums.data(), &m, &l, out.data(), nullptr, 1, 0, nullptr, 0, 0};
      kernel->finish(&call);
      return out;
    };
    // Between attend and finish a kernel keeps sums in an order of its own, that of its instruction set.
    std::vector<float> numbers(16);
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    const std::vector<std::uint16_t> order = finished(numbers), out = finished(acc);
    for (std::size_t i = 0; i < 16; ++i) {
      const float sum = acc.at(static_cast<std::size_t>(valueOf(dtype, order[i])));
      EXPECT_EQ(out[i], bitsOf(dtype, sum)) << sum;
    }
  }
}

} // namespace deft::test
