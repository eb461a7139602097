#include "runtime/device/Driver.h"

#include "tests/support/SetVariable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::device {
namespace {

TEST(DriverTest, AMissingLibraryIsAnEnvironmentErrorThatNamesIt) {
  const auto driver = Driver::load("libthere_is_no_such_driver.so");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(driver.error().message, "no CUDA driver: `libthere_is_no_such_driver.so` cannot be loaded");
  EXPECT_THAT(driver.error().hint, ::testing::HasSubstr("the CPU back end needs none"));
}

TEST(DriverTest, ALibraryWithoutTheFunctionsIsTooOld) {
  const auto driver = Driver::load("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, ::testing::HasSubstr("too old: it lacks `cu"));
}

TEST(DriverTest, WhatHidesTheGpusIsNamed) {
  const test::SetVariable visible("CUDA_VISIBLE_DEVICES", ""), hidden("DEFT_FAKE_CUDA_HIDDEN", "1");
  const auto driver = Driver::load(DEFT_FAKE_CUDA);
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, ::testing::HasSubstr("cannot start the CUDA driver"));
  EXPECT_EQ(driver.error().hint,
            std::string("CUDA_VISIBLE_DEVICES is ``, which may hide the GPUs; ") + kWithoutGpu);
}

} // namespace
} // namespace deft::device
