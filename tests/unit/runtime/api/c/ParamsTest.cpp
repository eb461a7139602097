#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

constexpr char kWithParams[] =
    "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous;"
    "  param far : i32; param slope : f32[query_heads];"
    "  score = s + slope[head]; mask  = tree && kv_pos > q_pos - far; }";

class ParamsTest : public testing::Test {
protected:
  void SetUp() override {
    if (!deft_has_compiler())
      GTEST_SKIP() << "the library has no compiler";
    attention = made<AttentionHandle>(deft_attention_compile, kWithParams, nullptr);
    params = made<ParamsHandle>(deft_params_make, attention.get());
  }

  AttentionHandle attention;
  ParamsHandle params;
};

TEST_F(ParamsTest, WrongValuesAreNamed) {
  EXPECT_EQ(deft_params_set(params.get(), "fra", 3), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("fra"));
  EXPECT_EQ(deft_params_set(params.get(), "far", 2.5), DEFT_USAGE);
  EXPECT_EQ(deft_params_set(params.get(), "slope", NAN), DEFT_USAGE);
  const float three[] = {1, 2, 3};
  EXPECT_EQ(deft_params_set_f32(params.get(), "slope", three, 3), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "parameter `slope` has 4 values, not 3");
  const int32_t whole[] = {1, 2, 3, 4};
  EXPECT_EQ(deft_params_set_i32(params.get(), "slope", whole, 4), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "parameter `slope` is f32, not i32");
}

TEST_F(ParamsTest, OnlyArraysLieInAGpusMemoryAndTheHostDoesNotReadThem) {
  const float somewhere[4] = {};
  EXPECT_EQ(deft_params_set_device(params.get(), "far", somewhere, 1), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("`param far : i32[1]`"));
  EXPECT_EQ(deft_params_set_device(params.get(), "slope", somewhere, 3), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "parameter `slope` has 4 values, not 3");
  EXPECT_EQ(deft_params_set_device(params.get(), "slope", nullptr, 4), DEFT_USAGE);
  const void *const crooked = reinterpret_cast<const char *>(somewhere) + 2;
  EXPECT_EQ(deft_params_set_device(params.get(), "slope", crooked, 4), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "parameter `slope` does not begin at a multiple of 4 bytes");
  ASSERT_EQ(deft_params_set_device(params.get(), "slope", somewhere, 4), DEFT_OK);
  ASSERT_EQ(deft_params_set(params.get(), "far", 1), DEFT_OK);

  const auto options = sized<deft_tune_options>();
  const auto tuner = made<TunerHandle>(deft_tuner_make, attention.get(), &options);
  EXPECT_EQ(deft_tuner_set_params(tuner.get(), params.get()), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("parameter `slope` is in a GPU's memory"));
}

/// Two values in the cache, of which a query sees the last `far`: their mean is its output, as all keys are
/// 0.
TEST_F(ParamsTest, ARunTakesTheCallersValuesAndCopiesAreApart) {
  const float slopes[] = {1, 1, 1, 1};
  ASSERT_EQ(deft_params_set_f32(params.get(), "slope", slopes, 4), DEFT_OK);
  ASSERT_EQ(deft_params_set(params.get(), "far", 1), DEFT_OK);
  const auto copy = made<ParamsHandle>(deft_params_copy, params.get());
  ASSERT_EQ(deft_params_set(copy.get(), "far", 2), DEFT_OK);

  const auto tree = made<TreeHandle>(deft_tree_make);
  ASSERT_EQ(deft_tree_add_root(tree.get(), 2, 0, nullptr), DEFT_OK);
  ASSERT_EQ(deft_tree_add_query(tree.get(), 0, DEFT_WHOLE, nullptr), DEFT_OK);
  const auto runtime = made<RuntimeHandle>(deft_runtime_make, nullptr);
  std::vector<uint16_t> q(4 * 64), k(2 * 2 * 64), v(k.size()), out(q.size());
  std::fill(v.begin() + 128, v.end(), 0x4000); // 0, then 2
  const int64_t rows[] = {1, 4, 64}, cache[] = {2, 2, 64};
  const deft_tensor tensor = {.size = sizeof tensor,
                              .data = q.data(),
                              .shape = rows,
                              .strides = nullptr,
                              .dtype = DEFT_BF16,
                              .ndim = 3,
                              .device_type = 0,
                              .device_id = 0};
  deft_tensor outTensor = tensor, kTensor = tensor, vTensor = tensor;
  outTensor.data = out.data();
  kTensor.shape = vTensor.shape = cache;
  kTensor.data = k.data();
  vTensor.data = v.data();
  const deft_outputs outputs = {.size = sizeof outputs, .out = &outTensor, .lse = nullptr};
  for (const auto &[given, expected] : {std::pair(params.get(), 0x4000), std::pair(copy.get(), 0x3f80)}) {
    const deft_plan_options options = {.size = sizeof options,
                                       .params = given,
                                       .partition = 0,
                                       .chunk_tokens = 0,
                                       .workers = 1,
                                       .is_invariant = 0,
                                       .checks_places = 0,
                                       .reserved = 0};
    const auto plan = made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), &options);
    const deft_inputs inputs = {.size = sizeof inputs,
                                .q = &tensor,
                                .k = &kTensor,
                                .v = &vTensor,
                                .page_table = nullptr,
                                .params = given,
                                .settings = {},
                                .k_rope = nullptr,
                                .lists = nullptr};
    ASSERT_EQ(deft_runtime_run(runtime.get(), attention.get(), plan.get(), &inputs, &outputs), DEFT_OK)
        << deft_error_text();
    EXPECT_THAT(out, testing::Each(expected));
  }
}

} // namespace
} // namespace deft::c_test
