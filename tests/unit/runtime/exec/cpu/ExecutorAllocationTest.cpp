/// Steps allocate nothing once an executor has seen one of the size. A program of its own: it counts every
/// call of operator new, of all threads.

#include "tests/support/CountAllocations.h"
#include "tests/unit/runtime/exec/cpu/ExecutorProblem.h"

namespace deft::exec {
namespace {

using test::allocations;

TEST(ExecutorAllocationTest, TheSecondStepOfASizeAllocatesNothing) {
  const ScalarProblem large(test::levelTree({1, 3, 9}, {100, 40, 20}), 1);
  const ScalarProblem small(test::levelTree({1, 2}, {40, 7}), 2);
  CpuExecutor executor = makeExecutor(3);
  Outputs outputs = large.run(executor);
  // A call whose helpers wake late keeps its record until they have gone, and the next call takes another:
  // some steps until there are enough.
  const std::vector<abi::ParamSlot> params;
  const OutputView output{outputs.out.data(), outputs.lse.data()};
  const auto steps = [&](int count) {
    const long long before = allocations;
    for (int step = 0; step < count; ++step) {
      const ScalarProblem &problem = step % 2 ? small : large;
      const auto ran = executor.run(problem.kernel, problem.variant, problem.plan,
                                    InputView::of(problem.inputs, problem.variant, params), output);
      EXPECT_TRUE(ran.ok());
    }
    return allocations - before;
  };
  long long last = -1;
  for (int attempt = 0; attempt < 20 && last != 0; ++attempt)
    last = steps(50);
  EXPECT_EQ(last, 0);
  EXPECT_GT(allocations, 0); // the hook counts
}

} // namespace
} // namespace deft::exec
