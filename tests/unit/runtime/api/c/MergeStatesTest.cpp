#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace deft::c_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two states of two rows of two values each.
class MergeStatesTest : public testing::Test {
protected:
  static deft_tensor tensor(std::vector<float> &values, const int64_t *shape, int32_t ndim) {
    auto made = sized<deft_tensor>();
    made.data = values.data();
    made.shape = shape;
    made.dtype = DEFT_F32;
    made.ndim = ndim;
    return made;
  }
  deft_status merge() { return deft_merge_states(states, 2, &to); }

  const int64_t shape[3] = {2, 1, 2};
  std::vector<float> firstOut = {1, 2, 3, 4}, secondOut = {5, 6, 7, 8}, firstLse = {0, -INFINITY},
                     secondLse = {0, 1}, out = std::vector<float>(4), lse = std::vector<float>(2);
  deft_tensor first = tensor(firstOut, shape, 3), second = tensor(secondOut, shape, 3),
              merged = tensor(out, shape, 3), firstLog = tensor(firstLse, shape, 2),
              secondLog = tensor(secondLse, shape, 2), mergedLog = tensor(lse, shape, 2);
  deft_state states[2] = {{&first, &firstLog}, {&second, &secondLog}}, to = {&merged, &mergedLog};
};

TEST_F(MergeStatesTest, StatesBecomeOne) {
  ASSERT_EQ(merge(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(out, ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(lse, ElementsAre(testing::FloatNear(std::log(2.f), 1e-6f), 1));
  to = states[0]; // in place, and the logarithm is not wanted
  to.lse = nullptr;
  ASSERT_EQ(merge(), DEFT_OK) << deft_error_text();
  EXPECT_THAT(firstOut, ElementsAre(3, 4, 7, 8));
}

TEST_F(MergeStatesTest, WrongTensorsAreNamed) {
  second.dtype = DEFT_BF16;
  EXPECT_EQ(merge(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "states[1].out is bfloat16, the merge takes float32");
  second.dtype = DEFT_F32;
  const int64_t other[3] = {2, 1, 3};
  merged.shape = other;
  EXPECT_EQ(merge(), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("to.out is [2, 1, 3], it must be"));
  merged.shape = shape;
  states[0].lse = nullptr;
  EXPECT_EQ(merge(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "states[0].lse is null");
  states[0].lse = &firstLog;
  first.dtype = DEFT_I32;
  EXPECT_EQ(merge(), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "states[0].out is int32, it must be float32, float16 or bfloat16");
  first.dtype = DEFT_F32;
  EXPECT_EQ(deft_merge_states(states, 0, &to), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "states are 0, a call merges 1 to 16");
  EXPECT_EQ(deft_merge_states(nullptr, 2, &to), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_merge_states: states is null");
  EXPECT_EQ(merge(), DEFT_OK);
}

} // namespace
} // namespace deft::c_test
