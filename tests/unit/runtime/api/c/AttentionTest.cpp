#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

constexpr char kWithParams[] =
    "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous;"
    "  param cap : f32 = 30; param far : i32; param slope : f32[query_heads];"
    "  param doc : i32[tokens]; param own : i32[queries];"
    "  score = cap * tanh(s / cap) + slope[head];"
    "  mask  = tree && kv_pos > q_pos - far && doc[token] == own[query]; }";

TEST(AttentionTest, FactsAreThoseOfTheSpec) {
  const AttentionHandle attention = loadAttention();
  auto facts = sized<deft_attention_facts>();
  ASSERT_EQ(deft_attention_get_facts(attention.get(), &facts), DEFT_OK);
  EXPECT_STREQ(facts.name, "host_program");
  EXPECT_EQ(facts.query_heads, 4);
  EXPECT_EQ(facts.kv_heads, 2);
  EXPECT_EQ(facts.head_dim, 64);
  EXPECT_EQ(facts.page_size, 16);
  EXPECT_EQ(facts.dtype, DEFT_BF16);
  EXPECT_EQ(facts.output_dtype, DEFT_BF16);
  EXPECT_EQ(facts.has_lse, 1);
  EXPECT_EQ(facts.param_count, 0);
  EXPECT_EQ(facts.page_stride, 2048);
  EXPECT_EQ(facts.token_stride, 128);
  EXPECT_EQ(facts.head_stride, 64);
  EXPECT_EQ(facts.key_dim, 64);
  EXPECT_EQ(facts.value_dim, 64);
  EXPECT_EQ(facts.query_dtype, DEFT_BF16);
  EXPECT_EQ(facts.key_dtype, DEFT_BF16);
  EXPECT_EQ(facts.value_dtype, DEFT_BF16);
  EXPECT_EQ(facts.value_in_key, 0);
  EXPECT_EQ(facts.sees_path, 0);
  auto info = sized<deft_param_info>();
  EXPECT_EQ(deft_attention_get_param(attention.get(), 0, &info), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "there is no parameter 0, `host_program` has 0");
}

TEST(AttentionTest, OptionsChooseNameAndAttention) {
  deft_attention *none = nullptr;
  auto named = sized<deft_compile_options>();
  named.name = "mine.deft";
  EXPECT_EQ(deft_attention_compile("attention a { query_heads = 4; kv_heads = 3; }", &named, &none),
            DEFT_DIAGNOSTICS);
  EXPECT_THAT(deft_error_message(), HasSubstr("mine.deft:1:"));
  EXPECT_EQ(deft_attention_load_package(DEFT_TEST_PACKAGE, "another", &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("host_program"));
}

TEST(AttentionTest, ErrorsCallItByItsTitle) {
  if (!deft_has_compiler())
    GTEST_SKIP() << "the library has no compiler";
  auto titled = sized<deft_compile_options>();
  titled.title = "the layer's attention";
  const auto attention = made<AttentionHandle>(deft_attention_compile, kWithParams, &titled);
  ASSERT_TRUE(attention);
  auto facts = sized<deft_attention_facts>();
  ASSERT_EQ(deft_attention_get_facts(attention.get(), &facts), DEFT_OK);
  EXPECT_STREQ(facts.name, "a");
  const auto params = made<ParamsHandle>(deft_params_make, attention.get());
  EXPECT_EQ(deft_params_set(params.get(), "width", 1), DEFT_USAGE);
  EXPECT_STREQ(deft_error_message(), "the layer's attention has no parameter `width`");
}

TEST(AttentionTest, ParametersAreDescribed) {
  if (!deft_has_compiler())
    GTEST_SKIP() << "the library has no compiler";
  const auto attention = made<AttentionHandle>(deft_attention_compile, kWithParams, nullptr);
  ASSERT_TRUE(attention);
  auto cap = sized<deft_param_info>(), far = cap, slope = cap, doc = cap, own = cap;
  ASSERT_EQ(deft_attention_get_param(attention.get(), 0, &cap), DEFT_OK);
  ASSERT_EQ(deft_attention_get_param(attention.get(), 1, &far), DEFT_OK);
  ASSERT_EQ(deft_attention_get_param(attention.get(), 2, &slope), DEFT_OK);
  ASSERT_EQ(deft_attention_get_param(attention.get(), 3, &doc), DEFT_OK);
  ASSERT_EQ(deft_attention_get_param(attention.get(), 4, &own), DEFT_OK);
  EXPECT_STREQ(cap.name, "cap");
  EXPECT_EQ(cap.dtype, DEFT_F32);
  EXPECT_EQ(cap.has_default, 1);
  EXPECT_EQ(far.dtype, DEFT_I32);
  EXPECT_EQ(far.has_default, 0);
  EXPECT_EQ(far.is_array, 0);
  EXPECT_EQ(slope.length, 4);
  EXPECT_EQ(slope.is_array, 1);
  EXPECT_EQ(slope.sized_by, DEFT_SIZED_BY_SPEC);
  EXPECT_EQ(doc.length, 0);
  EXPECT_EQ(doc.sized_by, DEFT_SIZED_BY_TOKENS);
  EXPECT_EQ(own.sized_by, DEFT_SIZED_BY_QUERIES);
}

TEST(AttentionTest, SourcesAreText) {
  const AttentionHandle attention = loadAttention();
  const auto cuda = made<Owned<char>>(deft_attention_get_source, attention.get(), DEFT_SOURCE_CUDA, nullptr);
  EXPECT_THAT(cuda.get(), HasSubstr("extern \"C\""));
  const deft_source_options merge = {.size = sizeof merge, .architecture = "sm_80", .phase = "merge"};
  const auto merged = made<Owned<char>>(deft_attention_get_source, attention.get(), DEFT_SOURCE_CUDA, &merge);
  EXPECT_THAT(merged.get(), HasSubstr("deft_host_program_merge"));

  char *none = nullptr;
  const deft_source_options old = {.size = sizeof old, .architecture = "sm_75", .phase = nullptr};
  EXPECT_EQ(deft_attention_get_source(attention.get(), DEFT_SOURCE_CUDA, &old, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("unknown architecture `sm_75`"));
  const deft_source_options phase = {.size = sizeof phase, .architecture = nullptr, .phase = "none"};
  EXPECT_EQ(deft_attention_get_source(attention.get(), DEFT_SOURCE_CUDA, &phase, &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("has no phase `none`"));
  EXPECT_EQ(deft_attention_get_source(attention.get(), 7, nullptr, &none), DEFT_USAGE);
  EXPECT_EQ(none, nullptr);
  const auto spec = made<Owned<char>>(deft_attention_get_source, attention.get(), DEFT_SOURCE_SPEC, nullptr);
  EXPECT_THAT(spec.get(), HasSubstr("attention host_program"));

  if (deft_has_compiler()) {
    const auto ir = made<Owned<char>>(deft_attention_get_source, attention.get(), DEFT_SOURCE_IR, nullptr);
    EXPECT_THAT(ir.get(), HasSubstr("deft.attention"));
  } else {
    EXPECT_EQ(deft_attention_get_source(attention.get(), DEFT_SOURCE_IR, nullptr, &none), DEFT_ENVIRONMENT);
  }
}

} // namespace
} // namespace deft::c_test
