// Full attention that selects, and sparse attention over what it selected, by a kernel in plain C++: runs
// also where there is no compiler, and under the thread sanitizer.
#include "runtime/exec/cpu/SelectJob.h"

#include "runtime/exec/DrawnLists.h"
#include "runtime/reference/Check.h"
#include "runtime/reference/Selecting.h"
#include "tests/unit/runtime/exec/cpu/ExecutorProblem.h"

#include <gtest/gtest.h>

#include <numeric>

namespace deft::exec {
namespace {

using Selecting = test::ScalarKernel<6, 2, 16, /*Selects=*/true>;

/// What one selecting and one sparse run give.
struct Ran {
  Selection selection;
  plan::Paths paths;
  Outputs full, sparse;
};

Ran runBoth(const ScalarProblem &problem, const spec::Variant &variant, int budget, CpuExecutor &executor) {
  Ran ran;
  const auto slots = problem.inputs.paramSlots(variant);
  const auto view = InputView::of(problem.inputs, variant, slots);
  const auto rows = static_cast<std::size_t>(problem.inputs.queryCount) * 6;
  for (Outputs *outputs : {&ran.full, &ran.sparse}) {
    outputs->out.assign(rows * 16, 0xffff);
    outputs->lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
  }
  const CpuKernel kernel = Selecting::kernel();
  auto done =
      executor.runSelecting(kernel, variant, problem.plan, view, {ran.full.out.data(), ran.full.lse.data()},
                            budget, ran.selection, ran.paths);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
  done = executor.runSparse(kernel, variant, ran.selection, ran.paths, view,
                            {ran.sparse.out.data(), ran.sparse.lse.data()});
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
  return ran;
}

spec::Variant variantBy(spec::SelectBy by) {
  spec::Variant variant = Selecting::variant();
  variant.select->by = by;
  variant.select->keepFirst = 2;
  variant.select->keepLast = 3;
  return variant;
}

TEST(SelectJobTest, ListsAndSparseOutputsAreThoseOfTheDefinition) {
  CpuExecutor executor = makeExecutor(3);
  for (const auto by : {spec::SelectBy::KvHead, spec::SelectBy::QueryHead, spec::SelectBy::Query})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const ScalarProblem problem(
          seed % 2 ? test::randomForest(seed, {12, 60, 10}) : test::causalForest(seed, {12, 60, 10}), seed);
      const spec::Variant variant = variantBy(by);
      std::vector<int> queries(problem.tree.queries().size());
      std::iota(queries.begin(), queries.end(), 0);
      for (const int budget : {8, 40, 4000}) {
        const Ran ran = runBoth(problem, variant, budget, executor);
        const auto lists =
            reference::checkSelection(variant, problem.tree, problem.inputs, ran.selection, queries);
        EXPECT_TRUE(lists.passed()) << lists.fault;
        EXPECT_GT(lists.recall(), 0.99);
        const auto sparse = reference::check(variant, problem.tree, problem.inputs, ran.sparse,
                                             {.selection = &ran.selection});
        EXPECT_TRUE(sparse.passed()) << reference::explainFailure(sparse);
      }
    }
}

TEST(SelectJobTest, TheFullAttentionIsTheSameBitByBit) {
  const ScalarProblem problem(test::randomForest(9), 9);
  CpuExecutor executor = makeExecutor(2);
  const Outputs plain = problem.run(executor);
  const Ran ran = runBoth(problem, variantBy(spec::SelectBy::KvHead), 16, executor);
  EXPECT_EQ(ran.full.out, plain.out);
  EXPECT_EQ(ran.full.lse, plain.lse);
}

TEST(SelectJobTest, ResultsDoNotDependOnTheNumberOfThreads) {
  const ScalarProblem problem(test::randomForest(5), 5);
  const spec::Variant variant = variantBy(spec::SelectBy::Query);
  CpuExecutor one = makeExecutor(1), four = makeExecutor(4);
  const Ran a = runBoth(problem, variant, 20, one), b = runBoth(problem, variant, 20, four);
  EXPECT_EQ(a.selection.positions, b.selection.positions);
  EXPECT_EQ(a.selection.counts, b.selection.counts);
  EXPECT_EQ(a.sparse.out, b.sparse.out);
}

TEST(SelectJobTest, ListsOfAnotherShapeAreAnError) {
  const ScalarProblem problem(test::randomForest(5), 5);
  CpuExecutor executor = makeExecutor(1);
  Ran ran = runBoth(problem, variantBy(spec::SelectBy::KvHead), 20, executor);
  const auto slots = problem.inputs.paramSlots(problem.variant);
  const auto done = executor.runSparse(Selecting::kernel(), variantBy(spec::SelectBy::Query), ran.selection,
                                       ran.paths, InputView::of(problem.inputs, problem.variant, slots),
                                       {ran.sparse.out.data(), nullptr});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "the lists are not those of `scalar`");
}

// Rule K7.
TEST(SelectJobTest, GivenListsAreRead) {
  CpuExecutor executor = makeExecutor(3);
  spec::Variant variant = Selecting::variant();
  variant.select = {.budget = {.values = {700}, .range = {}}, .by = spec::SelectBy::Caller, .range = {}};
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const ScalarProblem problem(test::randomForest(seed, {12, 300, 10}), seed);
    plan::Paths paths;
    paths.read(problem.plan);
    const DrawnLists drawn = drawLists(paths, problem.inputs, variant.cache.pageSize, 700, true, seed);
    const auto slots = problem.inputs.paramSlots(variant);
    Outputs sparse;
    sparse.out.assign(static_cast<std::size_t>(problem.inputs.queryCount) * 6 * 16, 0xffff);
    sparse.lse.assign(static_cast<std::size_t>(problem.inputs.queryCount) * 6, 12345.f);
    ASSERT_TRUE(executor.runSparse(Selecting::kernel(), variant, drawn.given(), problem.plan,
                                   InputView::of(problem.inputs, variant, slots),
                                   {sparse.out.data(), sparse.lse.data()}));
    const auto report =
        reference::check(variant, problem.tree, problem.inputs, sparse, {.selection = &drawn.selection});
    EXPECT_TRUE(report.passed()) << "seed " << seed << ": " << reference::explainFailure(report);
  }
}

} // namespace
} // namespace deft::exec
