// Masks, scores and biases that depend on less than a row and a token: what a kernel then has once must count
// for every row and every token.
#include "compiler/driver/Compilation.h"
#include "runtime/exec/cpu/SharedObject.h"
#include "tests/support/Forest.h"
#include "tests/support/RandomExpr.h"
#include "tests/unit/compiler/spec/SpecTesting.h"
#include "tests/unit/runtime/exec/cpu/CompiledProblem.h"

#include <cmath>
#include <limits>
#include <random>

namespace deft::exec {
namespace {

/// One of each kind, by what they fold to.
const std::vector<std::string> &hookTexts() {
  static const std::vector<std::string> texts = {
      "score = 0.0;",
      "score = -inf;",
      "score = head_dim;",
      "score = false ? s : 0.5;",
      "param c : f32; score = c;",
      "param off : i32 = 1; score = off != 0 ? -1.5 : s;",
      "param b : f32[kv_heads]; score = b[kv_head];",
      "param b : f32[query_heads]; score = b[head];",
      "score = q_pos * 0.0625;",
      "score = query;",
      "score = kv_pos * 0.0625;",
      "score = depth;",
      "score = kv_pos % 3 == 0 ? -inf : 0.5;",
      "mask = true;",
      "mask = false;",
      "param off : i32 = 1; mask = off != 0;",
      "param off : i32 = 0; mask = off != 0;",
      "mask = kv_head == 0;",
      "mask = q_pos % 2 == 0;",
      "mask = head % 2 == 0;",
      "mask = kv_pos % 3 != 0;",
      "mask = depth != 1;",
      "mask = kv_pos % 3 != 0; score = 0.0;",
      "mask = q_pos % 2 == 0; score = kv_pos * 0.0625;",
      "mask = kv_head == 0; score = q_pos * 0.0625;",
      "mask = tree && q_pos - kv_pos < 40; score = 0.25;",
  };
  return texts;
}

std::vector<spec::Variant> tableOfVariants() {
  std::string text;
  int count = 0; // of attentions: every other sigmoid is of f16
  for (const std::string &hook : hookTexts())
    for (const std::string normalize : {"output = bf16 with lse;", "normalize = sigmoid;",
                                        "param bias : f32[kv_heads]; normalize = sigmoid(bias[kv_head] - 2);",
                                        "normalize = sigmoid(-log(max(q_pos + 1, 1)));"}) {
      const std::string name = "a" + std::to_string(count), dtype = count % 2 == 0 ? "bf16" : "f16";
      text += "attention " + name + " { query_heads = 4; kv_heads = 2; head_dim = 32; dtype = " + dtype +
              "; kv_cache = paged(page_size = 8);" + normalize + hook + " }\n";
      ++count;
    }
  const auto compiled = spec::testing::compile(text);
  EXPECT_EQ(compiled.errors, 0U) << compiled.findings; // a mask that hides all is worth a warning
  return compiled.variants;
}

/// Counts of tokens that are and are not multiples of 4, 16 and 64, alone and shared.
std::vector<tree::KvTree> trees() {
  std::vector<tree::KvTree> trees;
  for (const int tokens : {1, 3, 4, 5, 16, 17, 64, 100, 128})
    trees.push_back(test::levelTree({1}, {tokens}));
  trees.push_back(test::levelTree({1, 3, 9}, {64, 16, 4}));
  trees.push_back(test::levelTree({1, 2, 4}, {61, 7, 2}));
  trees.push_back(test::randomForest(17));
  return trees;
}

/// On every `step`-th tree from the first one on.
void expectRightOnTrees(const CpuKernel &kernel, const spec::Variant &variant, std::size_t first,
                        std::size_t step) {
  static const std::vector<tree::KvTree> all = trees();
  for (std::size_t i = first; i < all.size(); i += step) {
    SCOPED_TRACE("tree " + std::to_string(i));
    expectRight(kernel, variant, makeProblem(variant, all[i], i % 2 ? 0 : 16, i));
  }
}

TEST(UniformHooksTest, EachKindIsRightByJitAndFromAPackage) {
  const support::SourceManager sources;
  const std::vector<spec::Variant> variants = tableOfVariants();
  ASSERT_EQ(variants.size(), 4 * hookTexts().size());
  std::vector<std::string> objects;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    SCOPED_TRACE(hookTexts()[i / 4] + ", normalized in way " + std::to_string(i % 4));
    auto compilation = driver::Compilation::create(variants[i], sources);
    ASSERT_TRUE(compilation.ok());
    const auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    expectRightOnTrees(*kernel, variants[i], 0, 1);
    const auto object = compilation->cpuObject(3 + static_cast<int>(i) % (hostIsaLevel() - 2));
    ASSERT_TRUE(object.ok()) << object.error().message;
    objects.push_back(*object);
  }
  const auto library = driver::Compilation::linkCpuObjects(objects);
  ASSERT_TRUE(library.ok()) << library.error().message;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    SCOPED_TRACE(hookTexts()[i / 4] + ", normalized in way " + std::to_string(i % 4) + ", packaged");
    const auto kernel = loadCpuKernel(*library, variants[i], "p");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    expectRightOnTrees(*kernel, variants[i], i % 4, 4);
  }
}

// Rule N3.
TEST(UniformHooksTest, AScoreOfMinusInfinityForAllIsAnEmptyRow) {
  const auto compiled = spec::testing::compile("attention a { query_heads = 2; kv_heads = 1; head_dim = 16;"
                                               " score = -inf; output = bf16 with lse; }");
  const spec::Variant &variant = compiled.only();
  auto compilation = driver::Compilation::create(variant, support::SourceManager());
  ASSERT_TRUE(compilation.ok());
  const auto kernel = compilation->jitCpuKernel();
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  for (const int tokens : {4, 64, 67}) {
    const Outputs outputs =
        run(*kernel, variant, makeProblem(variant, test::levelTree({1}, {tokens}), 16, 1), 1);
    EXPECT_EQ(outputs.out, std::vector<std::uint16_t>(32, 0)) << tokens;
    EXPECT_EQ(outputs.lse, std::vector<float>(2, -std::numeric_limits<float>::infinity())) << tokens;
  }
}

/// Any expressions, masks and scores of every kind with each other. No f32 comparisons: a step of rounding
/// would decide them.
class RandomHooks {
public:
  explicit RandomHooks(unsigned seed) : random_(seed) {}

  spec::Variant variant() {
    using On = test::RandomExpr::On;
    using enum spec::ExprOp;
    constexpr auto kF32 = spec::ScalarType::F32;
    test::VariantBuilder builder(pick(2) ? 6 : 4, 2, 16 << pick(2));
    const auto make = [&](bool withScore) {
      test::RandomExpr made(builder, random_, withScore);
      made.withExtremes = false;
      made.realsOfThree = 0;
      made.on = static_cast<On>(pick(4));
      return made;
    };
    // What is larger would leave exponents of 0 alone, and a NaN becomes a number.
    const auto bounded = [&](spec::ExprId value) {
      const spec::ExprId low = builder.op(Max, kF32, {value, builder.constant(-6)});
      return builder.op(Min, kF32, {low, builder.constant(6)});
    };
    if (pick(3) > 0) {
      test::RandomExpr masks = make(false);
      const spec::ExprId mask = masks.boolean(1 + pick(3));
      builder.variant.mask = pick(2) ? masks.behindConstant(mask, 2) : mask;
    }
    if (pick(4) > 0) {
      test::RandomExpr scores = make(true);
      const spec::ExprId score = bounded(scores.real(pick(4)));
      builder.variant.score = pick(2) ? scores.behindConstant(score, 2) : score;
    }
    if (pick(2)) {
      builder.variant.normalize = spec::Normalize::Sigmoid;
      if (pick(2)) {
        test::RandomExpr biases = make(false);
        biases.on = pick(2) ? On::Row : On::Neither;
        builder.variant.sigmoidBias = bounded(biases.real(1));
      }
    } else {
      builder.variant.withLse = true;
    }
    builder.variant.scale = 0.25;
    builder.variant.cache.pageSize = 8;
    return builder.variant;
  }

  /// Each element its own value.
  void fill(std::vector<ParamValue> &params) {
    for (ParamValue &param : params) {
      for (float &value : param.f32)
        value = static_cast<float>(pick(41) - 20) / 8;
      for (std::int32_t &value : param.i32)
        value = pick(19) - 6;
    }
  }

private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  std::mt19937 random_;
};

/// The hooks as text.
std::string describe(const spec::Variant &variant) {
  const auto text = [&](const char *name, const std::optional<spec::ExprId> &hook) {
    return hook ? std::string(name) + " " + spec::testing::describe(variant, *hook) + " " : std::string();
  };
  return text("mask", variant.mask) + text("score", variant.score) + text("bias", variant.sigmoidBias) +
         (variant.normalize == spec::Normalize::Sigmoid ? "sigmoid" : "softmax");
}

TEST(UniformHooksTest, RandomOnesAreRight) {
  constexpr unsigned kSeed = 20261125;
  RandomHooks random(kSeed);
  const std::vector<tree::KvTree> trees = exec::trees();
  const support::SourceManager sources;
  for (int i = 0; i < 120; ++i) {
    const spec::Variant variant = random.variant();
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", variant " + std::to_string(i) + ": " +
                 describe(variant));
    auto compilation = driver::Compilation::create(variant, sources);
    ASSERT_TRUE(compilation.ok());
    const auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (std::size_t t = static_cast<std::size_t>(i) % 3; t < trees.size(); t += 3) {
      SCOPED_TRACE("tree " + std::to_string(t));
      Problem problem = makeProblem(variant, trees[t], i % 2 ? 0 : 16, t);
      random.fill(problem.inputs.params);
      expectRight(*kernel, variant, problem);
    }
  }
}

} // namespace
} // namespace deft::exec
