#include "compiler/codegen/cuda/hooks/HookEmitter.h"

#include "compiler/transforms/Import.h"
#include "compiler/transforms/Passes.h"
#include "runtime/nvrtc/Nvrtc.h"
#include "tests/support/RandomExpr.h"
#include "tests/unit/compiler/codegen/cuda/hooks/HookRunner.h"
#include "tests/unit/compiler/transforms/RegionInterpreter.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace deft::codegen::cuda {
namespace {

using spec::ExprId;
using spec::ScalarType;
using test::HookCall;
using test::HookCase;
using test::HookResult;
using test::Scalar;

/// A variant with random parameters and calls, its text, and what its IR says the results are.
struct Sample {
  HookCase text;
  std::vector<HookResult> expected;
};

class Sampler {
public:
  explicit Sampler(unsigned seed) : random_(seed) {}

  Sample sample(const spec::Variant &variant) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    transforms::loadDialects(context);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    transforms::importVariant(*module, variant,
                              [&](support::SourceRange) { return mlir::UnknownLoc::get(&context); });
    EXPECT_TRUE(mlir::succeeded(transforms::optimize(*module)));
    dialect::AttentionOp attention = *module->getOps<dialect::AttentionOp>().begin();

    Sample result;
    auto hooks = emitHooks(attention);
    EXPECT_TRUE(hooks.ok()) << hooks.error().message;
    result.text.hooks = *hooks;
    test::ParamValues values = bindParams(variant, result.text);
    for (int i = 0; i < 24; ++i)
      result.text.calls.push_back(call(variant));
    evaluate(attention, values, result);
    return result;
  }

private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }

  test::ParamValues bindParams(const spec::Variant &variant, HookCase &text) {
    using Shape = spec::Param::Shape;
    test::ParamValues values;
    for (const spec::Param &param : variant.params) {
      int count = param.shape == Shape::Scalar      ? 1
                  : param.shape == Shape::PerKvHead ? variant.kvHeads
                  : param.shape == Shape::Table     ? param.size
                                                    : variant.queryHeads;
      std::vector<std::uint32_t> bits;
      for (int i = 0; i < count; ++i) {
        Scalar value{pick(0, 15) == 0 ? INT32_MIN + pick(0, 1) : pick(-6, 12),
                     static_cast<float>(pick(-20, 20)) / 4};
        bool isReal = param.type == ScalarType::F32;
        values[param.name].push_back(value);
        bits.push_back(isReal ? std::bit_cast<std::uint32_t>(value.real)
                              : static_cast<std::uint32_t>(value.integer));
      }
      text.params.push_back(bits);
      text.isArray.push_back(param.shape != Shape::Scalar);
    }
    return values;
  }

  HookCall call(const spec::Variant &variant) {
    HookCall call;
    call.s = static_cast<float>(pick(-4000, 4000)) / 512;
    call.qPos = pick(-1, 40);
    call.kvPos = pick(0, 40);
    call.kvHead = pick(0, variant.kvHeads - 1);
    call.head = call.kvHead * variant.ratio() + pick(0, variant.ratio() - 1);
    call.depth = pick(0, 5);
    call.query = pick(0, 9);
    int lows[] = {call.qPos, call.kvPos, call.depth, call.query, call.head};
    for (int i = 0; i < 5; ++i) {
      call.tile[2 * i] = lows[i];
      call.tile[2 * i + 1] = i == 4 ? lows[i] : lows[i] + pick(0, 6);
    }
    call.tile[10] = call.kvHead;
    return call;
  }

  void evaluate(dialect::AttentionOp attention, const test::ParamValues &values, Sample &sample) {
    std::optional<test::RegionInterpreter> mask, score, tile;
    if (attention.hasScore())
      score.emplace(attention.getScore(), values);
    if (attention.hasMask()) {
      mask.emplace(attention.getMask(), values);
      tile.emplace(attention.getTile(), values);
    }
    for (const HookCall &call : sample.text.calls) {
      Scalar arguments[] = {{0, call.s},      {call.qPos, 0},  {call.kvPos, 0}, {call.head, 0},
                            {call.kvHead, 0}, {call.depth, 0}, {call.query, 0}};
      HookResult result;
      if (score)
        result.score = score->run(arguments)[0].real;
      if (mask) {
        result.mask = mask->run(arguments)[0].integer;
        std::vector<Scalar> bounds;
        for (int bound : call.tile)
          bounds.push_back({bound, 0});
        const std::vector<Scalar> &visibility = tile->run(bounds);
        result.any = visibility[0].integer;
        result.all = visibility[1].integer;
      }
      sample.expected.push_back(result);
    }
  }

  std::mt19937 random_;
};

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// How many of the calls say what.
struct Tally {
  int visible = 0, finite = 0, total = 0;
};

/// The emitter's text, compiled and run, against its IR, interpreted: the same bits, also where i32 wraps.
Tally expectSameBits(const std::vector<Sample> &samples) {
  std::vector<HookCase> cases;
  for (const Sample &sample : samples)
    cases.push_back(sample.text);
  const auto results = test::runHooks(cases);
  Tally tally;
  EXPECT_EQ(results.size(), cases.size());
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(cases[i].hooks);
    EXPECT_EQ(results[i].size(), samples[i].expected.size());
    for (size_t call = 0; call < results[i].size(); ++call) {
      const HookResult &got = results[i][call], &expected = samples[i].expected[call];
      EXPECT_TRUE(same(got.score, expected.score))
          << got.score << " is not " << expected.score << " in call " << call;
      EXPECT_EQ(got.mask, expected.mask) << "call " << call;
      EXPECT_EQ(got.any, expected.any) << "call " << call;
      EXPECT_EQ(got.all, expected.all) << "call " << call;
      tally.visible += expected.mask;
      tally.finite += std::isfinite(expected.score);
      ++tally.total;
    }
    if (testing::Test::HasFailure())
      break; // one text is enough to read
  }
  return tally;
}

TEST(HookEmitterTest, TextComputesWhatTheIrMeans) {
  constexpr unsigned kSeed = 8675309;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  Sampler sampler(kSeed);
  std::vector<Sample> samples;
  for (int i = 0; i < 160; ++i) {
    test::VariantBuilder builder(i % 2 ? 6 : 4, 2, 64);
    test::RandomExpr masks(builder, random, /*withScore=*/false), scores(builder, random, /*withScore=*/true);
    builder.variant.mask = masks.boolean(2 + i % 3);
    builder.variant.score = scores.real(2 + i % 4);
    samples.push_back(sampler.sample(builder.variant));
  }
  const Tally tally = expectSameBits(samples);
  EXPECT_GT(tally.visible, tally.total / 5);
  EXPECT_LT(tally.visible, tally.total * 4 / 5);
  EXPECT_GT(tally.finite, tally.total / 2);
}

/// Of rows alone, of tokens alone, of neither; as written, and where folding finds it out.
TEST(HookEmitterTest, TextOfHooksThatVaryWithLessIsRightToo) {
  constexpr unsigned kSeed = 424242;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  Sampler sampler(kSeed);
  std::vector<Sample> samples;
  for (int i = 0; i < 96; ++i) {
    test::VariantBuilder builder(i % 2 ? 6 : 4, 2, 64);
    test::RandomExpr masks(builder, random, /*withScore=*/false), scores(builder, random, /*withScore=*/true);
    masks.on = static_cast<test::RandomExpr::On>(i % 4);
    scores.on = static_cast<test::RandomExpr::On>(i / 4 % 4);
    builder.variant.mask = masks.boolean(1 + i % 3);
    builder.variant.score = scores.real(i % 4);
    if (i / 16 % 2) {
      builder.variant.mask = masks.behindConstant(*builder.variant.mask, 2);
      builder.variant.score = scores.behindConstant(*builder.variant.score, 2);
    }
    if (i % 2) {
      builder.variant.normalize = spec::Normalize::Sigmoid;
      test::RandomExpr biases(builder, random, /*withScore=*/false);
      biases.on = scores.on;
      builder.variant.sigmoidBias = biases.real(1);
    }
    samples.push_back(sampler.sample(builder.variant));
  }
  for (const double score : {0.0, -std::numeric_limits<double>::infinity()}) {
    test::VariantBuilder builder(4, 2, 64);
    builder.variant.mask = builder.constant(score == 0 ? 1 : 0, ScalarType::Bool);
    builder.variant.score = builder.constant(score);
    samples.push_back(sampler.sample(builder.variant));
  }
  EXPECT_GT(expectSameBits(samples).finite, 96 * 24 / 2);
}

TEST(HookEmitterTest, ParametersMayHaveTheNamesOfKeywordsAndMacros) {
  std::vector<Sample> samples;
  test::VariantBuilder builder(6, 2, 64);
  ExprId score = builder.read(spec::Builtin::S);
  for (const char *name :
       {"x", "_x", "__x", "x_", "float", "_Bool", "__FILE_", "__FILE__", "__device_", "pad", "p"}) {
    const ExprId read = builder.readParam(builder.param(name, ScalarType::F32, spec::Param::Shape::Scalar));
    score = builder.op(spec::ExprOp::Sub, ScalarType::F32, {read, score});
  }
  for (const char *name : {"y", "_y", "__CUDA_ARCH_"}) {
    const ExprId read =
        builder.readParam(builder.param(name, ScalarType::F32, spec::Param::Shape::PerQueryHead));
    score = builder.op(spec::ExprOp::Sub, ScalarType::F32, {read, score});
  }
  const ExprId element = builder.readTable(builder.table("_table", ScalarType::F32, 8), builder.integer(3));
  score = builder.op(spec::ExprOp::Sub, ScalarType::F32, {element, score});
  builder.variant.score = score;
  samples.push_back(Sampler(7).sample(builder.variant));
  EXPECT_GT(expectSameBits(samples).total, 0);
}

/// cap * tanh(s / cap), s where there is no cap; slope[head] * (kv_pos - q_pos), or less the difference the
/// other way round.
enum class Slope { None, Rising, Falling };
spec::Variant scoreOf(bool isCapped, Slope slope) {
  using enum spec::ExprOp;
  test::VariantBuilder builder(6, 2, 64);
  ExprId s = builder.read(spec::Builtin::S), score = s;
  if (isCapped) {
    ExprId cap = builder.readParam(builder.param("cap", ScalarType::F32, spec::Param::Shape::Scalar));
    ExprId tanh = builder.op(Tanh, ScalarType::F32, {builder.op(Div, ScalarType::F32, {s, cap})});
    score = builder.op(Mul, ScalarType::F32, {cap, tanh});
  }
  if (slope != Slope::None) {
    ExprId rate = builder.readParam(builder.param("rate", ScalarType::F32, spec::Param::Shape::PerQueryHead));
    ExprId from = builder.read(spec::Builtin::QPos), to = builder.read(spec::Builtin::KvPos);
    if (slope == Slope::Falling)
      std::swap(from, to);
    ExprId distance = builder.op(ToF32, ScalarType::F32, {builder.op(Sub, ScalarType::I32, {to, from})});
    score = builder.op(slope == Slope::Falling ? Sub : Add, ScalarType::F32,
                       {score, builder.op(Mul, ScalarType::F32, {distance, rate})});
  }
  builder.variant.score = score;
  return builder.variant;
}

TEST(HookEmitterTest, ScoresOfKnownFormsComeApartIntoWhatTheyAreMadeOf) {
  Sampler sampler(1);
  std::vector<HookCase> cases;
  for (bool isCapped : {false, true})
    for (Slope slope : {Slope::None, Slope::Rising, Slope::Falling}) {
      if (!isCapped && slope == Slope::None)
        continue;
      cases.push_back(sampler.sample(scoreOf(isCapped, slope)).text);
      const std::string says[] = {isCapped ? "kIsCapped = true;" : "kIsCapped = false;",
                                  slope != Slope::None ? "kIsSloped = true;" : "kIsSloped = false;"};
      for (const std::string &word : says)
        EXPECT_THAT(cases.back().hooks, testing::HasSubstr(word));
    }
  const auto results = test::runHooks(cases);
  ASSERT_EQ(results.size(), cases.size());
  for (size_t i = 0; i < results.size(); ++i)
    for (const HookResult &result : results[i])
      EXPECT_TRUE(std::abs(result.byForm - result.score) <= 1e-5f * (1 + std::abs(result.score)) ||
                  (std::isnan(result.byForm) && std::isnan(result.score)))
          << result.byForm << " is not " << result.score << " of\n"
          << cases[i].hooks;
}

TEST(HookEmitterTest, ScoresOfOtherFormsAreLeftAlone) {
  using enum spec::ExprOp;
  test::VariantBuilder builder(6, 2, 64);
  ExprId s = builder.read(spec::Builtin::S), kvPos = builder.read(spec::Builtin::KvPos);
  // The rate is the token's, so no row has it.
  ExprId rate = builder.op(ToF32, ScalarType::F32, {kvPos});
  builder.variant.score = builder.op(Tanh, ScalarType::F32, {builder.op(Mul, ScalarType::F32, {s, rate})});
  const std::string hooks = Sampler(1).sample(builder.variant).text.hooks;
  EXPECT_THAT(hooks, testing::HasSubstr("kIsCapped = false;"));
  EXPECT_THAT(hooks, testing::HasSubstr("kIsSloped = false;"));
  EXPECT_THAT(hooks, testing::Not(testing::HasSubstr("ScoreForm")));
}

TEST(HookEmitterTest, OperationWithoutCudaFormIsAnError) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  transforms::loadDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
    score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %0 = math.erf %s : f32
      deft.yield %0 : f32
    })",
                                                        &context);
  ASSERT_TRUE(module);
  auto hooks = emitHooks(*module->getOps<dialect::AttentionOp>().begin());
  ASSERT_FALSE(hooks.ok());
  EXPECT_EQ(hooks.error().message, "no CUDA form of `math.erf` in attention `a`");
}

/// Everything that an expression can hold is known to the device compiler without any header.
TEST(HookEmitterTest, TextCompilesForTheDevice) {
  auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc.ok())
    GTEST_SKIP() << nvrtc.error().message;
  using enum spec::ExprOp;
  test::VariantBuilder builder(6, 2, 64);
  ExprId window =
      builder.readParam(builder.param("window", ScalarType::I32, spec::Param::Shape::PerQueryHead));
  ExprId s = builder.read(spec::Builtin::S), kvPos = builder.read(spec::Builtin::KvPos);
  ExprId x = builder.op(ToF32, ScalarType::F32, {kvPos}), score = builder.op(Div, ScalarType::F32, {s, x});
  ExprId start = builder.op(Sub, ScalarType::I32, {builder.read(spec::Builtin::QPos), window});
  ExprId mask = builder.op(Gt, ScalarType::Bool, {kvPos, start});
  std::vector<spec::ExprOp> unary = test::functionsOfOne();
  unary.push_back(Neg);
  for (const spec::ExprOp function : unary) {
    ExprId far =
        builder.op(Lt, ScalarType::Bool, {builder.op(function, ScalarType::F32, {x}), builder.constant(2)});
    mask = builder.op(Or, ScalarType::Bool, {mask, far});
    score = builder.op(Add, ScalarType::F32, {score, builder.op(function, ScalarType::F32, {s})});
  }
  for (spec::ExprOp function : {Add, Sub, Mul, Div, Min, Max})
    for (ScalarType type : {ScalarType::I32, ScalarType::F32}) {
      if (function == Div && type == ScalarType::I32)
        continue;
      ExprId operand = type == ScalarType::I32 ? start : x;
      ExprId value = builder.op(function, type, {operand, builder.constant(3, type)});
      mask = builder.op(And, ScalarType::Bool, {mask, builder.op(Ne, ScalarType::Bool, {value, operand})});
    }
  builder.variant.mask = mask;
  builder.variant.score = score;
  std::string hooks = Sampler(1).sample(builder.variant).text.hooks;
  for (const char *function :
       {"expf(", "exp2f(", "logf(", "log2f(", "tanhf(", "tanhFast(", "sqrtf(", "rsqrtf(", "fabsf(", "fminf(",
        "__fadd_rn(", "__fdiv_rn(", "__fsqrt_rn(", "long long", "unsigned("})
    EXPECT_THAT(hooks, testing::HasSubstr(function));
  std::string text = "#include \"deft/hook_math.cuh\"\nnamespace {\n" + hooks + "}\n" + R"(
extern "C" __global__ void probe(const __grid_constant__ Params p, deft::TileBounds b, float *out) {
  int x = threadIdx.x;
  Variant::Row row = Variant::row(p, x, x, 0, x);
  deft::TileVisibility tile = Variant::tile(p, b);
  out[x] = Variant::mask(p, row, x, x, 0) && tile.any ? Variant::score(p, row, out[x], x, x, 0) : tile.all;
})";
  auto compiled = (*nvrtc)->compile("probe.cu", text, "sm_80", {.lineInfo = false, .ptx = false});
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
}

/// A long chain of shared values is printed without recursion and in statements of bounded size.
TEST(HookEmitterTest, DeepExpressionsBecomeStatements) {
  test::VariantBuilder builder(4, 2, 64);
  ExprId value = builder.read(spec::Builtin::S);
  for (int i = 0; i < 5000; ++i)
    value = builder.op(spec::ExprOp::Add, ScalarType::F32,
                       {builder.op(spec::ExprOp::Tanh, ScalarType::F32, {value}), value});
  builder.variant.score = value;
  Sample sample = Sampler(1).sample(builder.variant);
  size_t longest = 0, start = 0;
  for (size_t end; (end = sample.text.hooks.find('\n', start)) != std::string::npos; start = end + 1)
    longest = std::max(longest, end - start);
  EXPECT_LT(longest, 200u);
}

TEST(HookEmitterTest, ScaleIsThatOfTheVariant) {
  test::VariantBuilder builder(6, 2, 64);
  builder.variant.scale = 0.1;
  EXPECT_THAT(Sampler(1).sample(builder.variant).text.hooks, testing::HasSubstr("kScale = 0.1f;"));
}

} // namespace
} // namespace deft::codegen::cuda
