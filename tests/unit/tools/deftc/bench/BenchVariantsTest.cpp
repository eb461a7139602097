#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

// Runs where `libcuda.so.1` is the tests' driver, whose kernels compute nothing and take a fixed time.
namespace deft::cli {
namespace {

using module_cache::readText;
using module_cache::TestFolder;
using module_cache::writeText;
using ::testing::HasSubstr;

const char *const kSpec = R"(import "library.deft";
attention h32_8 {
  query_heads = 32;
  kv_heads    = 8;
  head_dim    = 128;
  dtype       = f16;
  kv_cache    = paged(page_size = 1);
}
attention h32_8_softcap : h32_8 {
  param cap : f32 = 30.0;
  score     = softcap(s, cap);
}
)";

class BenchVariantsTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (std::getenv("DEFT_EXPECT_FAKE_CUDA") == nullptr)
      GTEST_SKIP() << "the tests' driver is not the machine's";
    writeText(folder_.path("rows.deft"), kSpec);
    setenv("HOME", folder_.path("home").c_str(), 1); // kernels are kept there
  }
  test::Outcome run(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"bench",  "variants", folder_.path("rows.deft"),
                                       "--only", "FS_b20",   "--repeat",
                                       "1",      "--json",   folder_.path("report.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::runDeftc(arguments);
  }
  nlohmann::json onlyRun() const {
    const auto runs = nlohmann::json::parse(readText(folder_.path("report.json")))["variants"];
    EXPECT_EQ(runs.size(), 1u);
    return runs.at(0);
  }

  TestFolder folder_;
};

TEST_F(BenchVariantsTest, EachRoundHasItsRatioAndWrongResultsAreSaid) {
  const test::Outcome outcome = run({});
  EXPECT_NE(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, HasSubstr("tree               bound  plain us  softcap\n"));
  EXPECT_THAT(outcome.out, HasSubstr("1.00 WRONG\n"));
  const nlohmann::json softcap = onlyRun();
  EXPECT_EQ(softcap["tree"], "FS_b20");
  EXPECT_EQ(softcap["variant"], "softcap");
  EXPECT_EQ(softcap["ratios"], (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(softcap["right"], false);
}

TEST_F(BenchVariantsTest, InAHurryThereIsOneRound) {
  (void)run({"--quick"});
  EXPECT_EQ(onlyRun()["ratios"], (std::vector<double>{1}));
}

// The tests' driver computes nothing, so rows are wrong; which rows there are is not its business.
TEST_F(BenchVariantsTest, OnesOwnAttentionsRunOnOnesOwnTrees) {
  const std::string tree = folder_.path("mine"), spec = folder_.path("rows.deft");
  writeText(tree, R"({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 90},
                      {"parent": 0, "tokens": 7}], "queries": [{"node": 1}, {"node": 1}]})");
  const test::Outcome outcome =
      test::runDeftc({"bench", "own", spec + "#h32_8", "--tree", tree, "--workload", "few_shot:prompt=100",
                      "--quick", "--repeat", "1", "--json", folder_.path("report.json")});
  EXPECT_EQ(outcome.code, kExitDiagnostics) << outcome.err;
  const auto report = nlohmann::json::parse(readText(folder_.path("report.json")));
  EXPECT_THAT(report.dump(), HasSubstr("\"few_shot:prompt=100\""));
  EXPECT_THAT(report.dump(), HasSubstr("\"mine\""));
  EXPECT_EQ(report["complete"], true);
  EXPECT_THAT(outcome.out, HasSubstr("own on Fake Hopper"));

  // What was measured before an error is kept.
  const std::string broken = folder_.path("broken"), kept = folder_.path("kept.json");
  writeText(
      broken,
      R"({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": -1}], "queries": []})");
  EXPECT_EQ(test::runDeftc({"bench", "own", spec + "#h32_8", "--tree", tree, "--tree", broken, "--quick",
                            "--repeat", "1", "--json", kept})
                .code,
            kExitDiagnostics);
  const auto soFar = nlohmann::json::parse(readText(kept));
  EXPECT_EQ(soFar["complete"], false);
  ASSERT_EQ(soFar["suites"].at(0)["rows"].size(), 1u);
  EXPECT_EQ(soFar["suites"][0]["rows"][0]["name"], "mine");

  EXPECT_THAT(test::runDeftc({"bench", "own", spec, "--tree", tree}).err,
              HasSubstr("choose one with --variant"));
  EXPECT_EQ(test::runDeftc({"bench", "own", spec + "#h32_8"}).code, kExitUsage);
}

} // namespace
} // namespace deft::cli
