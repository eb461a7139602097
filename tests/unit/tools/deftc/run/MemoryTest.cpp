#include "tools/deftc/run/Memory.h"

#include "tests/support/RunDeftc.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::cli {
namespace {

using testing::HasSubstr;

TEST(MemoryTest, WhatIsNotThereIsAnErrorWithBothNumbers) {
  EXPECT_TRUE(checkMemory("all", 8e9, 8e9));
  const auto fits = checkMemory("two tensors", 20.5e9, 8e9);
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(fits.error().message, "two tensors take 20.50 GB, 8.00 GB of this machine's memory are free");
}

TEST(MemoryTest, TheMachineSaysWhatIsFree) {
  EXPECT_GT(freeMemoryBytes(), 1e6);
  EXPECT_TRUE(std::isfinite(freeMemoryBytes()));
}

// 2^20 branches of 2^10 tokens: 4 TB of cache, found before any of it is made.
TEST(MemoryTest, ARunThatCannotFitSaysSoAtOnce) {
  const test::Outcome outcome = test::runDeftc({"run", "speculative_verify", "--backend", "cpu", "--workload",
                                                "levels:nodes=1,1048576,tokens=1,1000"});
  if (outcome.err.find("this build of deftc is without the compiler") != std::string::npos)
    GTEST_SKIP() << "this build compiles no spec";
  EXPECT_EQ(outcome.code, kExitEnvironment);
  EXPECT_THAT(outcome.err,
              HasSubstr("1,048,576,001 tokens and the inputs and outputs of 1,048,576 queries take"));
  EXPECT_THAT(outcome.err, HasSubstr("of this machine's memory are free"));
}

} // namespace
} // namespace deft::cli
