#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace deft {
namespace {

using testing::HasSubstr;

constexpr char kWithParams[] = R"(attention a {
  query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous;
  param cap : f32 = 30; param far : i32; param slope : f32[query_heads];
  score = cap * tanh(s / cap) + slope[head];
  mask  = tree && kv_pos > q_pos - far;
})";

TEST(AttentionTest, AWrongSpecIsShownWhereItIsWrong) {
  const auto attention =
      compileSpec("attention a {\n  query_heads = 4;\n  kv_heads = 3;\n}\n", {.name = "mine.deft"});
  ASSERT_FALSE(attention);
  EXPECT_EQ(attention.error().code, ErrorCode::Diagnostics);
  EXPECT_THAT(attention.error().message, HasSubstr("mine.deft:"));
  EXPECT_THAT(attention.error().message, HasSubstr("^"));
  EXPECT_NE(attention.error().message.back(), '\n');
}

TEST(AttentionTest, ATextWithoutAFolderImportsOnlyTheLibrary) {
  const auto beside = compileSpec("import \"CMakeLists.deft\";\n");
  ASSERT_FALSE(beside);
  EXPECT_THAT(beside.error().message, HasSubstr("cannot find `CMakeLists.deft`"));
  const auto library = compileSpec("import \"library.deft\";\nattention a { query_heads = 1; kv_heads = 1; "
                                   "head_dim = 64; mask = tree && sliding_window(5); }");
  EXPECT_TRUE(library.ok() || library.error().code == ErrorCode::Environment) << library.error().text();
}

TEST(AttentionTest, APackageThatIsNotThereSaysItsName) {
  const auto attention = loadPackage("/nowhere/none.deftpkg");
  ASSERT_FALSE(attention);
  EXPECT_THAT(attention.error().message, HasSubstr("/nowhere/none.deftpkg"));
  const auto other = loadPackage(DEFT_TEST_PACKAGE, "another");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::Usage);
  EXPECT_THAT(other.error().text(), HasSubstr("host_program"));
}

TEST(AttentionTest, SourcesAreThoseOfItsUntunedKernels) {
  const auto attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const auto first = attention.source(SourceKind::Cuda);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_THAT(*first, HasSubstr("extern \"C\""));
  EXPECT_THAT(attention.source(SourceKind::Cuda, {.architecture = "sm_80", .phase = "merge"}).value(),
              HasSubstr("deft_host_program_merge"));
  EXPECT_NE(attention.source(SourceKind::Cuda, {.architecture = "sm_80"}).value(), *first);
  const auto unknown = attention.source(SourceKind::Cuda, {.architecture = "sm_75"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "unknown architecture `sm_75`");
  EXPECT_FALSE(attention.source(SourceKind::Cuda, {.phase = "none"}));
  EXPECT_FALSE(attention.source(static_cast<SourceKind>(7)));
  EXPECT_THAT(attention.source(SourceKind::Spec).value(), HasSubstr("attention host_program"));
  const auto ir = attention.source(SourceKind::Ir);
  EXPECT_EQ(ir.ok(), hasCompiler());
  EXPECT_THAT(ir.ok() ? *ir : "deft.attention", HasSubstr("deft.attention"));
}

TEST(AttentionTest, FactsAreThoseOfTheSpec) {
  const auto attention = loadPackage(DEFT_TEST_PACKAGE).value();
  EXPECT_EQ(attention.name(), "host_program");
  EXPECT_EQ(attention.queryHeads(), 4);
  EXPECT_EQ(attention.kvHeads(), 2);
  EXPECT_EQ(attention.headDim(), 64);
  EXPECT_EQ(attention.pageSize(), 16);
  EXPECT_EQ(attention.dtype(), DType::BF16);
  const TensorType bf16{DType::BF16, 64};
  EXPECT_EQ(attention.q(), bf16);
  EXPECT_EQ(attention.k(), bf16);
  EXPECT_EQ(attention.v(), bf16);
  EXPECT_EQ(attention.out(), bf16);
  EXPECT_FALSE(attention.valueInKey());
  EXPECT_FALSE(attention.seesPath());
  EXPECT_TRUE(attention.hasLse());
  EXPECT_EQ(attention.strides().page, 16 * 2 * 64);
  EXPECT_EQ(attention.strides().token, 2 * 64);
  EXPECT_EQ(attention.strides().head, 64);
  EXPECT_TRUE(attention.params().empty());
}

TEST(AttentionTest, WithoutTheCompilerARightSpecIsAnEnvironmentError) {
  const auto attention = compileSpec(kWithParams);
  if (hasCompiler()) {
    EXPECT_TRUE(attention.ok()) << attention.error().text();
    return;
  }
  ASSERT_FALSE(attention);
  EXPECT_EQ(attention.error().code, ErrorCode::Environment);
  EXPECT_THAT(attention.error().text(), HasSubstr("without the compiler"));
  EXPECT_THAT(attention.error().text(), HasSubstr("package"));
}

TEST(AttentionTest, ParametersAreCheckedWhenTheyAreSet) {
  if (!hasCompiler())
    GTEST_SKIP() << "the test package has no parameters";
  const auto attention = compileSpec(kWithParams).value();
  ASSERT_EQ(attention.params().size(), 3u);
  EXPECT_TRUE(attention.params()[0].hasDefault);
  EXPECT_FALSE(attention.params()[1].isF32);
  EXPECT_EQ(attention.params()[2].length, 4);
  Params params(attention);
  EXPECT_TRUE(params.set("far", 12));
  EXPECT_TRUE(params.set("slope", 0.5));
  const float slopes[] = {1, 2, 3, 4};
  EXPECT_TRUE(params.set("slope", std::span(slopes)));
  EXPECT_THAT(params.set("slope", std::span(slopes, 3)).error().message, HasSubstr("has 4 values, not 3"));
  EXPECT_THAT(params.set("far", 1.5).error().message, HasSubstr("is an i32"));
  EXPECT_THAT(params.set("far", std::span(slopes)).error().message, HasSubstr("is i32, not f32"));
  for (const double value : {std::nan(""), HUGE_VAL, 1e300})
    EXPECT_THAT(params.set("cap", value).error().message, HasSubstr("must be a finite f32, "));
  const float holed[] = {1, std::nanf(""), 3, 4};
  EXPECT_THAT(params.set("slope", std::span(holed)).error().message,
              HasSubstr("must be finite f32s, value 1 is nan"));
  EXPECT_TRUE(params.set("far", -2147483648.0)) << "the least that an i32 holds";
  for (const double value : {2147483648.0, -2147483649.0, std::nan("")})
    EXPECT_THAT(params.set("far", value).error().message, HasSubstr("is an i32, "));
  EXPECT_THAT(params.set("slop", 1).error().hint, HasSubstr("slope"));
}

TEST(ResultTest, ValueThrowsWhatTheErrorSays) {
  const Result<int> bad = Error{ErrorCode::Usage, "no", "try yes"};
  try {
    (void)bad.value();
    FAIL();
  } catch (const BadResult &exception) {
    EXPECT_STREQ(exception.what(), "no\n  = hint: try yes");
    EXPECT_EQ(exception.error().code, ErrorCode::Usage);
  }
}

} // namespace
} // namespace deft
