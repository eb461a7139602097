#include "compiler/support/Result.h"

#include <gtest/gtest.h>
#include <memory>

namespace deft::support {
namespace {

TEST(ResultTest, HoldsAValueOrAnError) {
  Result<std::string> good = std::string("value");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->size(), 5u);
  Result<std::string> bad = Error{ErrorCode::Usage, "message", "hint"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::Usage);
  EXPECT_EQ(bad.error().hint, "hint");
}

TEST(ResultTest, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 3);
}

TEST(ResultTest, OfVoidIsSuccessUnlessGivenAnError) {
  EXPECT_TRUE(Result<void>().ok());
  Result<void> bad = Error{ErrorCode::Environment, "no", {}};
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "no");
}

} // namespace
} // namespace deft::support
