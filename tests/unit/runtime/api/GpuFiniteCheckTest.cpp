#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

namespace deft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint16_t kNan = 0x7fc0; // in bf16

class GpuFiniteCheckTest : public GpuTest {
protected:
  /// The message of a run that looks; empty: all is finite.
  std::string look(GpuPlan &plan) {
    table_.upload(sequences_, stream_).value();
    plan.upload(stream_).value();
    GpuInputs inputs = this->inputs();
    inputs.settings.check_finite = 1;
    const auto ran = plan.run(attention_, inputs, outputs(), stream_);
    return ran ? "" : ran.error().message;
  }
};

TEST_F(GpuFiniteCheckTest, NamesTheRowAndWhatHoldsIt) {
  GpuPlan plan = GpuPlan::make(attention_, tree()).value();
  EXPECT_EQ(look(plan), "");
  EXPECT_TRUE(isRight()) << "it is a run as any other";
  // A page that no sequence has is not read.
  std::fill_n(k_.data() + (kPages - 1) * kPageSize * kKvHeads * kHeadDim, kHeadDim, kNan);
  EXPECT_EQ(look(plan), "");
  const std::int64_t slot = sequences_.slot(leaves_[2], 1);
  v_.data()[(slot * kKvHeads + 1) * kHeadDim + 9] = kNan;
  EXPECT_THAT(look(plan),
              StartsWith("query 2, head 2: V is NaN at element 9 of the token at kv_pos 71 of its path"));
  k_.data()[(sequences_.slot(0, 69) * kKvHeads + 0) * kHeadDim + 63] = kNan;
  EXPECT_THAT(look(plan),
              StartsWith("query 0, head 0: K is NaN at element 63 of the token at kv_pos 69 of its path"));
  q_.data()[0] = kNan;
  EXPECT_EQ(look(plan), "query 0, head 0: q is NaN at element 0");
}

TEST_F(GpuFiniteCheckTest, IsAnErrorInACapture) {
  GpuPlan plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_EQ(look(plan), "");
  void *graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  GpuInputs inputs = this->inputs();
  inputs.settings.check_finite = 1;
  const auto ran = plan.run(attention_, inputs, outputs(), stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("cannot be captured"));
}

} // namespace
} // namespace deft
