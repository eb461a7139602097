#include "tools/deftc/replay/ReplayStep.h"

#include "runtime/capture/StepFile.h"
#include "tests/unit/runtime/capture/Steps.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;

class ReplayStepTest : public testing::Test {
protected:
  /// The step of two branches after a change, opened.
  support::Result<ReplayStep> open(const std::function<void(capture::Step &)> &change = {}) {
    capture::Step step = test::branches();
    step.spec[0].text =
        "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; "
        "param width : i32; param slope : f32[kv_heads]; mask = tree && q_pos - kv_pos < width; }";
    if (change)
      change(step);
    module_cache::writeText(path_, capture::formatStep(step));
    return openStep(context_, path_, false);
  }
  std::string errorAfter(const std::function<void(capture::Step &)> &change) {
    const auto step = open(change);
    return step ? "" : step.error().message;
  }

  std::ostringstream out_, err_;
  Context context_{out_, err_, false, false, {}};
  module_cache::TestFolder folder_;
  std::string path_ = folder_.path("step.json");
};

TEST_F(ReplayStepTest, SaysWhatWasCapturedAndWhatIsDifferent) {
  const auto step = open();
  ASSERT_TRUE(step) << step.error().message;
  const std::string text = stepText(*step);
  EXPECT_THAT(
      text,
      HasSubstr("captured  by deftc 0.3.0 on A Processor (x86-64-v3, 2 threads), after its first run\n"));
  EXPECT_THAT(text, HasSubstr("run       the full attention, 100.0 us\n"));
  EXPECT_THAT(text,
              HasSubstr("chosen    heuristic: no tuned config; chosen by the cost model; class c1-t1\n"));
  EXPECT_THAT(text,
              HasSubstr("plan      5 items, 4 partials, 60 tokens read, for 2 workers; made in 12.5 us\n"));
  EXPECT_THAT(text, HasSubstr("replay    q, K and V are random; values of `doc` were not captured"));
}

TEST_F(ReplayStepTest, ParametersAreTheCapturedOnes) {
  const auto step = open();
  ASSERT_TRUE(step);
  const auto values = paramsOf(context_, *step, {});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ((*values)[0].i32, std::vector<int>{7});
  EXPECT_EQ((*values)[1].f32, (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ((*paramsOf(context_, *step, {"width=9"}))[0].i32, std::vector<int>{9});
}

TEST_F(ReplayStepTest, ParametersThatDoNotFitAreNamed) {
  const auto lacks = open([](capture::Step &step) { step.params.erase(step.params.begin()); });
  const auto none = paramsOf(context_, *lacks, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "the captured step lacks the value of parameter `slope` (f32[kv_heads]), which only the GPU had");
  const auto other = open([](capture::Step &step) { step.params[0].value.f32 = {1}; });
  EXPECT_THAT(paramsOf(context_, *other, {}).error().message,
              HasSubstr("the values of parameter `slope` are not f32[kv_heads]"));
  const auto unknown = open([](capture::Step &step) { step.params[0].name = "slop"; });
  EXPECT_THAT(paramsOf(context_, *unknown, {}).error().message, HasSubstr("`slop`"));
}

TEST_F(ReplayStepTest, StepsThatContradictThemselvesAreNamed) {
  EXPECT_THAT(errorAfter([](capture::Step &step) { step.pageSize = 32; }),
              HasSubstr("`page_size` is 32, its spec says 16"));
  EXPECT_THAT(errorAfter([](capture::Step &step) { step.attention = "b"; }),
              HasSubstr("defines no attention `b`"));
  EXPECT_THAT(errorAfter([](capture::Step &step) { step.spec[0].text = "attention a {"; }),
              HasSubstr("this deftc does not accept the spec of"));
  EXPECT_THAT(errorAfter([](capture::Step &step) { step.spec[0].text = "import \"other.deft\";"; }),
              HasSubstr("the captured step does not hold `other.deft`"));
  EXPECT_THAT(errorAfter([](capture::Step &step) { step.tensors = "gone"; }), HasSubstr("are not in `"));
  EXPECT_THAT(errorAfter([](capture::Step &step) { step.lengths = {40, 49}; }),
              HasSubstr("which is not how a leaf grows"));
}

} // namespace
} // namespace deft::cli
