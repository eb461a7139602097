#include "runtime/api/Call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace deft::api {
namespace {

TEST(CallTest, EveryErrorHasItsStatus) {
  const auto statusOf = [](support::ErrorCode code) {
    return call({}, [&]() -> Result<void> { return Error{code, "what", ""}; });
  };
  EXPECT_EQ(statusOf(support::ErrorCode::Diagnostics), DEFT_DIAGNOSTICS);
  EXPECT_EQ(statusOf(support::ErrorCode::Usage), DEFT_USAGE);
  EXPECT_EQ(statusOf(support::ErrorCode::Environment), DEFT_ENVIRONMENT);
  EXPECT_EQ(statusOf(support::ErrorCode::Internal), DEFT_INTERNAL);
}

TEST(CallTest, NoExceptionPasses) {
  EXPECT_EQ(call({}, []() -> Result<void> { throw std::runtime_error("the sky falls"); }), DEFT_INTERNAL);
  EXPECT_THAT(deft_error_text(), testing::HasSubstr("unexpected internal error"));
  EXPECT_EQ(call({}, []() -> Result<void> { throw 5; }), DEFT_INTERNAL);
  EXPECT_STREQ(deft_error_text(), "an exception of a type that is not known");
  EXPECT_EQ(call({}, []() -> Result<void> { throw std::bad_alloc(); }), DEFT_ENVIRONMENT);
  EXPECT_STREQ(deft_error_text(), "out of memory");
  EXPECT_STREQ(deft_error_hint(), "");
  EXPECT_EQ(call({{"thing", nullptr}}, []() -> Result<void> { return {}; }), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "TestBody: thing is null"); // and not what it was before
}

TEST(CallTest, TheFieldBeginsTheMessage) {
  EXPECT_EQ(call({}, []() -> Result<void> { return wrong("deft_some::width", "is 3", "make it 2"); }),
            DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "deft_some::width");
  EXPECT_STREQ(deft_error_detail(), "is 3");
  EXPECT_STREQ(deft_error_message(), "deft_some::width is 3");
  EXPECT_STREQ(deft_error_text(), "deft_some::width is 3\n  = hint: make it 2");
  const support::Error ofTheInside{support::ErrorCode::Usage, "bits[2][1] is odd", "", "bits[2][1]"};
  EXPECT_EQ(call({}, [&]() -> Result<void> { return ofTheInside; }), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "bits[2][1]");
  EXPECT_STREQ(deft_error_detail(), "is odd");
  EXPECT_STREQ(deft_error_message(), "bits[2][1] is odd");
  EXPECT_EQ(call({}, []() -> Result<void> { return usage("no"); }), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "");
  EXPECT_STREQ(deft_error_detail(), "no");
}

TEST(CallTest, AHandleThatIsNotMadeIsNull) {
  struct Handle {
    int value;
  };
  const auto body = [] { return Result(std::make_unique<Handle>(Handle{1})); };
  Handle *handle = reinterpret_cast<Handle *>(16);
  EXPECT_EQ(make({{"thing", nullptr}}, &handle, body), DEFT_USAGE);
  EXPECT_EQ(handle, nullptr);
  ASSERT_EQ(make({}, &handle, body), DEFT_OK);
  EXPECT_EQ(handle->value, 1);
  delete handle;
}

TEST(CallTest, NumbersThatNobodyWantsAreNotWritten) {
  EXPECT_TRUE(give(Result<int>(5), static_cast<int *>(nullptr)));
  int number = 1;
  EXPECT_FALSE(give(Result<int>(usage("no")), &number));
  EXPECT_EQ(number, 1);
  EXPECT_TRUE(give(Result<int>(5), &number));
  EXPECT_EQ(number, 5);
}

TEST(CallTest, ArraysAreCopiesThatAreGivenBackAsAWhole) {
  const std::vector<int> numbers = {1, 2, 3};
  const auto twice = [](int number) { return 2L * number; };
  long *doubled = nullptr;
  std::size_t count = 0;
  giveArray(numbers, &doubled, &count, twice);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(doubled[2], 6);
  deft_free(doubled);
  giveArray(std::vector<int>(), &doubled, &count, twice);
  EXPECT_NE(doubled, nullptr);
  EXPECT_EQ(count, 0u);
  deft_free(doubled);
}

} // namespace
} // namespace deft::api
