#include "tests/support/RunDeftc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

// Runs where `libcuda.so.1` is the tests' driver (its GPUs: tests/support/FakeCuda.h), and again where there
// is none.
namespace deft::cli {
namespace {

using ::testing::HasSubstr;

bool hasTestDriver() { return std::getenv("DEFT_EXPECT_FAKE_CUDA") != nullptr; }

TEST(DevicesCommandTest, EachGpuIsARowWithTheKernelsThatItGets) {
  if (!hasTestDriver())
    GTEST_SKIP() << "the tests' driver is not the machine's";
  const test::Outcome outcome = test::runDeftc({"devices"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(
      outcome.out,
      HasSubstr(
          "index  name         capability  kernels    SMs   memory  families                              \n"
          "    0  Fake Hopper  9.0         sm_90a     132   80 GiB  sm90_latent, sm80_latent, sm90, sm80  "
          "supported\n"
          "    1  Fake Ampere  8.0         sm_80      132   80 GiB  sm80_latent, sm80                     "
          "supported, not tried on this architecture\n"
          "    2  Fake Turing  7.5         none       132   80 GiB  none                                  "
          "too old: 8.0 or newer is needed\n"
          "driver for CUDA 13.0\nCPU: "));
}

TEST(DevicesCommandTest, JsonSaysTheSame) {
  if (!hasTestDriver())
    GTEST_SKIP() << "the tests' driver is not the machine's";
  const test::Outcome outcome = test::runDeftc({"devices", "--json"});
  EXPECT_EQ(outcome.code, kExitOk);
  const auto report = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(report["gpus"].size(), 3u);
  EXPECT_EQ(report["gpus"][0]["arch"], "sm_90a");
  EXPECT_EQ(report["gpus"][0]["families"],
            (std::vector<std::string>{"sm90_latent", "sm80_latent", "sm90", "sm80"}));
  EXPECT_EQ(report["gpus"][1]["measured"], false);
  EXPECT_EQ(report["gpus"][2]["supported"], false);
  EXPECT_EQ(report["gpus"][2]["arch"], nullptr);
  EXPECT_EQ(report["driver_cuda"], "13.0");
  EXPECT_TRUE(report["cpu"].contains("model"));
}

TEST(DevicesCommandTest, WithoutADriverItSaysWhyAndWhatRunsAllTheSame) {
  if (hasTestDriver())
    GTEST_SKIP() << "there is a driver";
  const test::Outcome outcome = test::runDeftc({"devices"});
  if (outcome.code == kExitOk)
    GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(outcome.code, kExitEnvironment);
  EXPECT_THAT(outcome.out, testing::StartsWith("no GPU: "));
  EXPECT_THAT(outcome.out, HasSubstr("\nCPU: "));
  const auto report = nlohmann::json::parse(test::runDeftc({"devices", "--json"}).out);
  EXPECT_TRUE(report["gpus"].empty());
  EXPECT_NE(report["why_no_gpu"], "");
}

} // namespace
} // namespace deft::cli
