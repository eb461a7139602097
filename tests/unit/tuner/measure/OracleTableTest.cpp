#include "tuner/measure/OracleTable.h"

#include "compiler/kernels/DefaultConfig.h"
#include "runtime/exec/Half.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/plan/Planner.h"
#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"
#include "tuner/measure/Work.h"

#include <gtest/gtest.h>

namespace deft::measure {
namespace {

using Scalar = test::ScalarKernel<4, 2, 16>;

Work makeWork() {
  Work work;
  work.variant = Scalar::variant();
  work.classes = {{"small", {test::levelTree({1, 4}, {40, 9})}}};
  return work;
}

class OracleTableTest : public testing::Test {
protected:
  void SetUp() override {
    auto made = makeInputs(work, work.classes[0]);
    ASSERT_TRUE(made.ok());
    inputs = std::move(*made);
    inputs.inputs.queryCount = static_cast<int>(inputs.trees[0].queries().size());
    const auto plan = plan::makePlan(inputs.trees[0], plan::VariantFacts::of(work.variant),
                                     *kernels::defaultConfig(work.variant, nullptr), 1);
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(exec::runCpu(Scalar::kernel(), work.variant, *plan, inputs.inputs, outputs, 1).ok());
  }

  Work work = makeWork();
  ClassInputs inputs;
  exec::Outputs outputs;
};

TEST_F(OracleTableTest, RightOutputsPass) {
  const OracleTable table(work.variant, inputs.trees[0], inputs.inputs, 1'000'000, 2);
  EXPECT_EQ(table.groups(), 4 * 2); // all queries, all KV heads
  EXPECT_TRUE(table.compare(outputs).ok());
}

TEST_F(OracleTableTest, OneWrongRowIsNamed) {
  const OracleTable table(work.variant, inputs.trees[0], inputs.inputs, 1'000'000, 1);
  const std::size_t row = 2 * 4 + 3; // query 2, head 3
  for (std::size_t d = 0; d < 16; ++d)
    outputs.out[row * 16 + d] = exec::bf16FromFloat(1.1F * exec::floatFromBf16(outputs.out[row * 16 + d]));
  const auto compared = table.compare(outputs);
  ASSERT_FALSE(compared.ok());
  EXPECT_EQ(compared.error().message.substr(0, 20), "query 2, head 3: err");
}

TEST_F(OracleTableTest, ARowThatNobodyWroteIsSeenWhereverItIs) {
  const OracleTable table(work.variant, inputs.trees[0], inputs.inputs, /*mostPairs=*/1, 1);
  EXPECT_EQ(table.groups(), 4);
  outputs.out[(1 * 4 + 2) * 16 + 5] = 0xffff;
  EXPECT_EQ(table.compare(outputs).error().message, "query 1, head 2: the output is no number");
}

TEST_F(OracleTableTest, AWrongLseIsSeen) {
  const OracleTable table(work.variant, inputs.trees[0], inputs.inputs, 1'000'000, 1);
  outputs.lse[5] += 0.01F;
  EXPECT_EQ(table.compare(outputs).error().message, "query 1, head 1: lse off by 0.01, allowed 0.001");
}

} // namespace
} // namespace deft::measure
