/// The machine that is this host's processors; GPUs are tests/gpu's.

#include "tuner/measure/Machine.h"

#include "compiler/kernels/DefaultConfig.h"
#include "runtime/plan/Planner.h"
#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"
#include "tuner/measure/Work.h"

#include <gtest/gtest.h>

namespace deft::measure {
namespace {

using Scalar = test::ScalarKernel<4, 2, 16>;

class MachineTest : public testing::Test {
protected:
  MachineTest() { work.variant = Scalar::variant(); }
  /// Inputs of a tree, of this seed.
  ClassInputs inputsOf(std::uint64_t seed) {
    work.seed = seed;
    auto made = makeInputs(work, {"class", {test::levelTree({1, 4}, {40, 9})}});
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  plan::Plan planOf(const tree::KvTree &tree, int blocks) const {
    return *plan::makePlan(tree, factsOf(work, config::DeviceKind::Cpu),
                           *kernels::defaultConfig(work.variant, nullptr), blocks);
  }

  Work work;
};

TEST_F(MachineTest, ARunIsOfTheInputsThatItIsAskedFor) {
  auto machine = openCpu(work.variant, Scalar::kernel(), 2);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ((*machine)->key(), config_cache::DeviceKey::ofCpu(2));
  EXPECT_EQ((*machine)->driver(), "");
  ClassInputs values = inputsOf(1), counting = inputsOf(2);
  ASSERT_TRUE((*machine)->load(values.inputs, InputSet::Values));
  ASSERT_TRUE((*machine)->load(counting.inputs, InputSet::Counting));
  const auto runner = (*machine)->open(nullptr);
  ASSERT_TRUE(runner);
  EXPECT_EQ((*runner)->blocks(), 2);
  const plan::Plan plan = planOf(values.trees[0], 2);
  exec::Outputs first, other, again;
  ASSERT_TRUE((*runner)->run(plan, InputSet::Values, first));
  ASSERT_TRUE((*runner)->run(plan, InputSet::Counting, other));
  ASSERT_TRUE((*runner)->run(plan, InputSet::Values, again));
  EXPECT_EQ(first.out.size(), 4U * 4 * 16);
  EXPECT_NE(first.out, other.out);
  EXPECT_EQ(first.out, again.out);
}

TEST_F(MachineTest, EachRunIsTimedAndLeavesTheInputs) {
  auto machine = openCpu(work.variant, Scalar::kernel(), 1);
  ASSERT_TRUE(machine);
  ClassInputs values = inputsOf(1);
  const auto before = values.inputs.k;
  ASSERT_TRUE((*machine)->load(values.inputs, InputSet::Values));
  const auto runner = (*machine)->open(nullptr);
  const auto times = (*runner)->time(planOf(values.trees[0], 1), 5);
  ASSERT_TRUE(times) << times.error().message;
  ASSERT_EQ(times->size(), 5U);
  for (const double us : *times)
    EXPECT_GT(us, 0);
  EXPECT_EQ(values.inputs.k, before);
}

} // namespace
} // namespace deft::measure
