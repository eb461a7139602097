#include "compiler/support/Unexpected.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <new>
#include <stdexcept>

namespace deft::support {
namespace {

TEST(UnexpectedTest, MemoryIsTheMachines) {
  const Error error = unexpected(std::bad_alloc());
  EXPECT_EQ(error.code, ErrorCode::Environment);
  EXPECT_EQ(error.message, "out of memory");
}

TEST(UnexpectedTest, TextThatIsNoUtf8IsTheCallers) {
  try {
    (void)nlohmann::json("\xff").dump();
    FAIL() << "nlohmann writes it";
  } catch (const std::exception &exception) {
    const Error error = unexpected(exception);
    EXPECT_EQ(error.code, ErrorCode::Usage);
    EXPECT_EQ(error.message, "a given text is not UTF-8 and cannot be written as JSON");
  }
}

TEST(UnexpectedTest, AnythingElseIsABugAndItsTextIsNotTold) {
  const Error error = unexpected(std::out_of_range("vector::_M_range_check"));
  EXPECT_EQ(error.code, ErrorCode::Internal);
  EXPECT_EQ(error.message.find("vector"), std::string::npos) << error.message;
}

} // namespace
} // namespace deft::support
