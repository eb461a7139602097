#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace deft::cli {
namespace {

using test::Outcome;
using testing::HasSubstr;

/// A home of its own for each test.
class TuneCalibrateTest : public testing::Test {
protected:
  void SetUp() override { ::setenv("DEFT_CACHE_DIR", folder.path("cache").c_str(), 1); }
  void TearDown() override { ::unsetenv("DEFT_CACHE_DIR"); }

  static Outcome calibrate(std::vector<std::string> more) {
    std::vector<std::string> arguments{
        "tune", DEFT_TEST_PACKAGE, "--calibrate", "--backend", "cpu", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::runDeftc(arguments);
  }

  module_cache::TestFolder folder;
};

TEST_F(TuneCalibrateTest, PricesAreKeptForThisDeviceAndErrorsAreSaidBeforeAndAfter) {
  const Outcome outcome = calibrate({"--budget", "20s"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("beginning with the prices of any processor\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\ncache_gb_s "));
  EXPECT_THAT(outcome.out, HasSubstr("\nprices are off by "));
  EXPECT_THAT(outcome.out, HasSubstr("the cheapest by the prices takes "));
  const std::vector<std::string> files = module_cache::namesIn(folder.path("cache/prices"));
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(outcome.out, HasSubstr("kept in " + folder.path("cache/prices/" + files[0])));
}

TEST_F(TuneCalibrateTest, TooLittleTimeIsAnErrorAndWritesNothing) {
  const Outcome outcome = calibrate({"--budget", "0.001s"});
  EXPECT_EQ(outcome.code, kExitEnvironment);
  EXPECT_THAT(outcome.err, HasSubstr("probes could be timed in 0 s, at least 12 are needed"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("cache/prices")));
}

TEST_F(TuneCalibrateTest, TreesAreForTuningAlone) {
  EXPECT_EQ(calibrate({"--workload", "few_shot"}).code, kExitUsage);
  const Outcome outcome = test::runDeftc({"tune", "--workload", "few_shot", "--backend", "cpu"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("SPEC is required"));
}

} // namespace
} // namespace deft::cli
