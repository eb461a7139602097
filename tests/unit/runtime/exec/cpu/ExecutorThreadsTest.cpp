/// Executors under several host threads. Needs no compiler, so that the thread sanitizer sees all of it.

#include "runtime/reference/Check.h"
#include "tests/unit/runtime/exec/cpu/ExecutorProblem.h"

#include <thread>
#include <vector>

namespace deft::exec {
namespace {

tree::KvTree someTree(std::uint64_t seed) {
  return seed % 2 ? test::levelTree({1, 3, 9}, {100, 40, 20}) : test::randomForest(seed);
}

void expectSame(const Outputs &a, const Outputs &b) {
  EXPECT_EQ(a.out, b.out);
  ASSERT_EQ(a.lse.size(), b.lse.size());
  for (std::size_t i = 0; i < a.lse.size(); ++i)
    EXPECT_EQ(a.lse[i], b.lse[i]) << i; // infinities are equal, NaN is not
}

TEST(ExecutorThreadsTest, ThreadsDoNotChangeABit) {
  const ScalarProblem problem(someTree(1), 1);
  EXPECT_GT(problem.plan.mergeQuery.size(), 0u);
  CpuExecutor one = makeExecutor(1);
  const Outputs expected = problem.run(one);
  const auto report = reference::check(problem.variant, problem.tree, problem.inputs, expected, {});
  EXPECT_TRUE(report.passed()) << reference::explainFailure(report);
  for (int threads : {2, 3, 8}) {
    CpuExecutor many = makeExecutor(threads);
    EXPECT_EQ(many.threads(), threads);
    expectSame(expected, problem.run(many));
  }
}

TEST(ExecutorThreadsTest, PartialsAreWrittenBeforeTheyAreRead) {
  const ScalarProblem problem(someTree(1), 1);
  ASSERT_GT(problem.plan.partialSlots, 0);
  CpuExecutor executor = makeExecutor(3);
  const Outputs expected = problem.run(executor);
  executor.poison();
  expectSame(expected, problem.run(executor));
}

TEST(ExecutorThreadsTest, TwoExecutorsInOneProcessDoNotInterfere) {
  auto host = [](std::uint64_t seed) {
    CpuExecutor executor = makeExecutor(3);
    CpuExecutor alone = makeExecutor(1);
    for (std::uint64_t step = 0; step < 10; ++step) {
      const ScalarProblem problem(someTree(seed + step), seed + step);
      expectSame(problem.run(alone), problem.run(executor));
    }
  };
  std::thread first(host, 100), second(host, 200);
  first.join();
  second.join();
}

TEST(ExecutorThreadsTest, HostThreadsShareAnExecutor) {
  CpuExecutor shared = makeExecutor(3);
  auto host = [&](std::uint64_t seed) {
    CpuExecutor alone = makeExecutor(1);
    const ScalarProblem large(someTree(seed | 1), seed), small(test::levelTree({1}, {5}), seed);
    const Outputs expectedLarge = large.run(alone), expectedSmall = small.run(alone);
    for (int step = 0; step < 10; ++step) {
      expectSame(expectedLarge, large.run(shared));
      expectSame(expectedSmall, small.run(shared));
    }
  };
  std::vector<std::thread> hosts;
  for (std::uint64_t seed : {1, 2, 3})
    hosts.emplace_back(host, seed);
  for (std::thread &thread : hosts)
    thread.join();
}

TEST(ExecutorThreadsTest, AnExecutorMovesAndServesSmallerAndLargerSteps) {
  CpuExecutor executor = makeExecutor(2);
  CpuExecutor alone = makeExecutor(1);
  for (int tokens : {300, 1, 0, 700}) {
    const ScalarProblem problem(test::levelTree({1, 5}, {tokens, 3}), 9);
    executor = CpuExecutor(std::move(executor));
    expectSame(problem.run(alone), problem.run(executor));
  }
}

TEST(ExecutorThreadsTest, AStepWithoutQueriesWritesNothing) {
  CpuExecutor executor = makeExecutor(2);
  const ScalarProblem problem(test::edgeTrees().front().second, 1);
  EXPECT_TRUE(problem.run(executor).out.empty());
}

} // namespace
} // namespace deft::exec
