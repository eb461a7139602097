#include "runtime/c_api/Boundary.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace deft::c {
namespace {

TEST(BoundaryTest, EveryErrorHasItsStatus) {
  const auto statusOf = [](ErrorCode code) {
    return call("deft_f", {}, [&]() -> Result<void> { return Error{code, "what", ""}; });
  };
  EXPECT_EQ(statusOf(ErrorCode::Diagnostics), DEFT_DIAGNOSTICS);
  EXPECT_EQ(statusOf(ErrorCode::Usage), DEFT_USAGE);
  EXPECT_EQ(statusOf(ErrorCode::Environment), DEFT_ENVIRONMENT);
  EXPECT_EQ(statusOf(ErrorCode::Internal), DEFT_INTERNAL);
}

TEST(BoundaryTest, NoExceptionPasses) {
  EXPECT_EQ(call("deft_f", {}, []() -> Result<void> { throw std::runtime_error("the sky falls"); }),
            DEFT_INTERNAL);
  EXPECT_STREQ(deft_error_text(), "an exception: the sky falls");
  EXPECT_EQ(call("deft_f", {}, []() -> Result<void> { throw 5; }), DEFT_INTERNAL);
  EXPECT_STREQ(deft_error_text(), "an exception of a type that is not known");
  EXPECT_EQ(call("deft_f", {}, []() -> Result<void> { throw std::bad_alloc(); }), DEFT_ENVIRONMENT);
  EXPECT_STREQ(deft_error_text(), "out of memory");
  EXPECT_STREQ(deft_error_hint(), "");
  EXPECT_EQ(call("deft_f", {{"thing", nullptr}}, []() -> Result<void> { return {}; }), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_f: thing is null"); // and not what it was before
}

TEST(BoundaryTest, AHandleThatIsNotMadeIsNull) {
  struct Handle {
    int value;
  };
  Handle *handle = reinterpret_cast<Handle *>(16);
  EXPECT_EQ(make("deft_f", {{"thing", nullptr}}, &handle, [] { return Result<int>(1); }), DEFT_USAGE);
  EXPECT_EQ(handle, nullptr);
  ASSERT_EQ(make("deft_f", {}, &handle, [] { return Result<int>(1); }), DEFT_OK);
  EXPECT_EQ(handle->value, 1);
  delete handle;
}

TEST(BoundaryTest, NumbersThatNobodyWantsAreNotWritten) {
  EXPECT_TRUE(give(Result<int>(5), static_cast<int *>(nullptr)));
  int number = 1;
  EXPECT_FALSE(give(Result<int>(usage("no")), &number));
  EXPECT_EQ(number, 1);
  EXPECT_TRUE(give(Result<int>(5), &number));
  EXPECT_EQ(number, 5);
}

} // namespace
} // namespace deft::c
