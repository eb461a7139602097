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
  EXPECT_EQ(refused.error().hint, "load it for invariant plans");
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

/// As on a processor: a plan bounds what is seen by the values that are known, and a run needs all.
TEST_F(GpuOtherKernelsTest, KernelsAreLoadedWithoutValuesAndRunWithThem) {
  const auto compiled = compileSpec(
      "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = paged(page_size = 16);"
      "  output = bf16 with lse; scale = 0.25; param w : i32; mask = tree && kv_pos > q_pos - w; }");
  if (!compiled)
    GTEST_SKIP() << compiled.error().text(); // without the compiler
  const auto loaded = GpuAttention::load(gpu_, *compiled);
  if (!loaded && loaded.error().code == ErrorCode::Environment)
    GTEST_SKIP() << loaded.error().text(); // without NVRTC
  ASSERT_TRUE(loaded) << loaded.error().text();
  auto plan = GpuPlan::make(*loaded, tree()).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  const auto unsaid = plan.run(*loaded, inputs(), outputs(), stream_);
  ASSERT_FALSE(unsaid);
  EXPECT_EQ(unsaid.error().message, "params[\"w\"] needs a value (i32)");
  for (const int w : {1 << 20, 7}) {
    Params params(*compiled);
    params.set("w", w).value();
    const auto given = loaded->withParams(params).value();
    const auto ran = plan.run(given, inputs(), outputs(), stream_);
    EXPECT_TRUE(ran) << ran.error().text();
  }
}

} // namespace
} // namespace deft
