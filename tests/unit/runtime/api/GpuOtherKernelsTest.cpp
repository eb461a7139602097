// Runs of a plan by kernels that it was not made with, as those of other layers.
#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

namespace deft {
namespace {

using ::testing::HasSubstr;

class GpuOtherKernelsTest : public GpuTest {};

TEST_F(GpuOtherKernelsTest, AnInvariantPlanIsRunByKernelsThatAre) {
  const auto loaded =
      GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value(), {.invariant = true}).value();
  auto plan = GpuPlan::make(loaded, tree(), {.plan = {.invariant = true}}).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  const auto ran = plan.run(loaded, inputs(), outputs(), stream_);
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_TRUE(isRight());
  const auto refused = plan.run(attention_, inputs(), outputs(), stream_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("an invariant plan cannot use family sm90"));
  EXPECT_EQ(refused.error().hint, "load it with GpuLoadOptions::invariant");
}

TEST_F(GpuOtherKernelsTest, AGpuThatIsOpenedTwiceIsOne) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_TRUE(uploadAndRun(plan));
  const auto again =
      GpuAttention::load(Gpu::open(0).value(), loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  const auto ran = plan.run(again, inputs(), outputs(), stream_);
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_TRUE(isRight());
}

} // namespace
} // namespace deft
