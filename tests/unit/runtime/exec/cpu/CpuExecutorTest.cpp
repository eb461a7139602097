#include "runtime/exec/cpu/CpuExecutor.h"

#include "compiler/driver/Compilation.h"
#include "runtime/exec/cpu/SharedObject.h"
#include "tests/support/Forest.h"
#include "tests/support/ShippedVariants.h"
#include "tests/support/SpreadInputs.h"
#include "tests/support/TestTrees.h"
#include "tests/unit/runtime/exec/cpu/CompiledProblem.h"

#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace deft::exec {

namespace {

class ShippedSpecs : public testing::Test {
protected:
  static void SetUpTestSuite() { shipped_ = new test::ShippedVariants(test::shippedVariants()); }
  static void TearDownTestSuite() { delete shipped_; }

  static CpuKernel jit(const spec::Variant &variant) {
    auto compilation = driver::Compilation::create(variant, shipped_->sources);
    EXPECT_TRUE(compilation.ok());
    auto kernel = compilation->jitCpuKernel();
    EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : kernel.error().message);
    return kernel.ok() ? *kernel : nullptr;
  }
  /// Whole models of latent attention, which take the oracle minutes: one of their ranks stands for all
  /// heads.
  static bool isOfManyRanks(const spec::Variant &variant) {
    return variant.queryHeads * variant.tensors.q.dim > 16384;
  }
  static const spec::Variant &first() { return shipped_->variants.front(); }
  static test::ShippedVariants *shipped_;
};
test::ShippedVariants *ShippedSpecs::shipped_ = nullptr;

TEST_F(ShippedSpecs, AreRightOnEveryTestTree) {
  ASSERT_FALSE(shipped_->variants.empty());
  for (const spec::Variant &variant : shipped_->variants) {
    if (isOfManyRanks(variant))
      continue;
    const CpuKernel kernel = jit(variant);
    ASSERT_TRUE(kernel) << variant.name;
    std::uint64_t seed = 1;
    for (auto &[name, tree] : test::testTrees()) {
      SCOPED_TRACE(variant.name + " on " + name);
      expectRight(kernel, variant, makeProblem(variant, tree, seed % 2 ? 0 : 32, seed));
      ++seed;
    }
  }
}

TEST_F(ShippedSpecs, AreRightOnRandomForests) {
  for (const spec::Variant &variant : shipped_->variants) {
    const CpuKernel kernel = jit(variant);
    ASSERT_TRUE(kernel) << variant.name;
    for (std::uint64_t seed = 100; seed < 104; ++seed) {
      SCOPED_TRACE(variant.name + ", seed " + std::to_string(seed));
      expectRight(kernel, variant, makeProblem(variant, test::randomForest(seed), 16, seed));
    }
  }
}

/// Small dims, so that forests can come by the thousand: every ratio, partition and chunk in turn, whole
/// results against the oracle.
TEST(RandomForestsTest, AreRightByTheThousand) {
  struct Small {
    spec::Variant variant;
    CpuKernel kernel;
  };
  std::vector<Small> all;
  const support::SourceManager sources;
  for (const auto &[kvHeads, ratio] : {std::pair{2, 1}, {1, 3}, {2, 4}, {1, 5}, {1, 7}, {1, 8}}) {
    spec::Variant variant;
    variant.name = "small";
    variant.kvHeads = kvHeads;
    variant.queryHeads = kvHeads * ratio;
    variant.cache.pageSize = 1 + 3 * ratio;
    variant.tensors = spec::Tensors::alike(16, ratio % 2 ? spec::DType::BF16 : spec::DType::F16);
    variant.withLse = true;
    variant.scale = 0.25;
    auto compilation = driver::Compilation::create(variant, sources);
    ASSERT_TRUE(compilation.ok());
    auto kernel = compilation->jitCpuKernel();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    all.push_back({variant, *kernel});
  }
  auto executor = CpuExecutor::create(2);
  ASSERT_TRUE(executor.ok());
  constexpr spec::Partition kPartitions[] = {
      spec::Partition::Query,   spec::Partition::Node,   spec::Partition::NodeChunk, spec::Partition::Flatten,
      spec::Partition::Cascade, spec::Partition::Greedy, spec::Partition::Union};
  constexpr int kChunks[] = {16, 0, 64};
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const auto &[variant, kernel] = all[seed % all.size()];
    const spec::Partition partition = kPartitions[seed % std::size(kPartitions)];
    const int chunk = kChunks[seed % std::size(kChunks)];
    Problem problem = makeProblem(variant, test::randomForest(seed, {16, 60, 24}), chunk, seed, partition);
    if (seed % 3 == 0)
      problem.inputs = test::spreadInputs(variant, std::move(problem.inputs), seed);
    Outputs outputs;
    ASSERT_TRUE(executor->run(kernel, variant, problem.plan, problem.inputs, outputs).ok());
    const auto report = reference::check(variant, problem.tree, problem.inputs, outputs, {});
    ASSERT_TRUE(report.passed()) << "seed " << seed << ", ratio " << variant.ratio() << ": "
                                 << reference::explainFailure(report);
    reference::Counting counting(variant, problem.tree, problem.inputs);
    const auto ran = reference::runPasses(counting, [&](Inputs &inputs, Outputs &ofTokens) {
      return executor->run(kernel, variant, problem.plan, inputs, ofTokens);
    });
    ASSERT_TRUE(ran.ok());
    const auto counted = counting.judge();
    ASSERT_TRUE(counted.passed()) << "seed " << seed << ": " << counted.fault;
    EXPECT_EQ(counted.noticeable, counted.pairs);
    for (std::size_t query = 0; query < problem.tree.queries().size(); ++query)
      if (problem.tree.pathTokens(problem.tree.queries()[query]) == 0) {
        const std::size_t row = query * static_cast<std::size_t>(variant.queryHeads);
        EXPECT_EQ(outputs.lse[row], -std::numeric_limits<float>::infinity()) << "seed " << seed;
        EXPECT_EQ(outputs.out[row * 16], 0) << "seed " << seed;
      }
  }
}

TEST_F(ShippedSpecs, RunFromSharedObjects) {
  for (int level = 3; level <= hostIsaLevel(); ++level) {
    std::vector<std::string> objects;
    for (const spec::Variant &variant : shipped_->variants) {
      auto compilation = driver::Compilation::create(variant, shipped_->sources);
      ASSERT_TRUE(compilation.ok());
      auto object = compilation->cpuObject(level);
      ASSERT_TRUE(object.ok()) << object.error().message;
      objects.push_back(*object);
    }
    auto library = driver::Compilation::linkCpuObjects(objects);
    ASSERT_TRUE(library.ok()) << library.error().message;
    for (const spec::Variant &variant : shipped_->variants) {
      SCOPED_TRACE(variant.name + " at level " + std::to_string(level));
      auto kernel = loadCpuKernel(*library, variant, "p");
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      expectRight(*kernel, variant, makeProblem(variant, test::randomForest(7), 48, 7));
    }
  }
}

/// Rows of the output with something between them, and what is between stays.
TEST_F(ShippedSpecs, RowsOfTheOutputMayBeApart) {
  const CpuKernel kernel = jit(first());
  ASSERT_TRUE(kernel);
  const Problem problem =
      makeProblem(first(), test::randomForest(7), 32, 7); // some are merged, others are not
  Outputs packed;
  ASSERT_TRUE(runCpu(kernel, first(), problem.plan, problem.inputs, packed, 2).ok());
  const auto row = static_cast<std::size_t>(rowStrideOf(0, first(), first().tensors.out));
  const std::size_t stride = row + 24, queries = packed.out.size() / row;
  std::vector<std::uint16_t> out(queries * stride, 0x1234);
  const auto params = problem.inputs.paramSlots(first());
  ASSERT_TRUE(runCpu(kernel, first(), problem.plan, InputView::of(problem.inputs, first(), params),
                     OutputView{out.data(), nullptr, static_cast<long long>(stride)}, 2)
                  .ok());
  ASSERT_GT(queries, 1u);
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], i % stride < row ? packed.out[i / stride * row + i % stride] : 0x1234) << i;
}

TEST_F(ShippedSpecs, ThreadsDoNotChangeABit) {
  const CpuKernel kernel = jit(first());
  ASSERT_TRUE(kernel);
  const Problem problem = makeProblem(first(), test::levelTree({1, 3, 9}, {100, 40, 20}), 32, 5);
  const Outputs one = run(kernel, first(), problem, 1);
  for (int threads : {2, 3, 8}) {
    const Outputs many = run(kernel, first(), problem, threads);
    EXPECT_EQ(one.out, many.out);
    EXPECT_EQ(one.lse, many.lse);
  }
}

TEST_F(ShippedSpecs, KernelOfAnotherVariantIsRefused) {
  const CpuKernel kernel = jit(first());
  ASSERT_TRUE(kernel);
  const Problem problem = makeProblem(first(), test::levelTree({1}, {10}), 0, 5);
  spec::Variant other = first();
  other.tensors = spec::Tensors::alike(2 * other.tensors.k.dim);
  Outputs outputs;
  auto ran = runCpu(kernel, other, problem.plan, problem.inputs, outputs, 1);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("its dim of q and k is " + std::to_string(first().tensors.k.dim)),
            std::string::npos)
      << ran.error().message;
  EXPECT_FALSE(runCpu(nullptr, first(), problem.plan, problem.inputs, outputs, 1).ok());
}

} // namespace
} // namespace deft::exec
