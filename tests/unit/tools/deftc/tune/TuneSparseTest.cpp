// On the tests' driver, whose kernels compute on the host and always take as long.
#include "tools/deftc/tune/TuneSparse.h"

#include "runtime/nvrtc/Nvrtc.h"
#include "tests/support/RunDeftc.h"
#include "tests/support/SetVariable.h"
#include "tests/support/SmallBudget.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

namespace deft::cli {
namespace {

using test::Outcome;
using testing::HasSubstr;
using testing::Not;

class TuneSparseTest : public testing::Test {
protected:
  /// A package whose lists have 80 tokens, and a tree of two queries.
  void SetUp() override {
    if (std::getenv("DEFT_EXPECT_FAKE_CUDA") == nullptr)
      GTEST_SKIP() << "not on the tests' driver";
    test::writeWithSmallBudget(DEFT_TEST_SELECTING_PACKAGE, path_);
    module_cache::writeText(tree_, R"({"format": "deftc-tree", "version": 1,
      "nodes": [{"parent": -1, "tokens": 320}, {"parent": -1, "tokens": 330}],
      "queries": [{"node": 0}, {"node": 1}]})");
  }

  Outcome tune(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"tune", path_});
    return test::runDeftc(more);
  }
  Outcome run(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run", path_, "--tree", tree_, "--backend", "cuda", "--repeat", "1"});
    return test::runDeftc(more);
  }
  std::string file() const {
    const std::string sparse = folder_.path("cache/sparse");
    if (!std::filesystem::exists(sparse))
      return "";
    const auto names = module_cache::namesIn(sparse);
    for (const std::string &name : names)
      if (name.ends_with(".json"))
        return sparse + "/" + name;
    return "";
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path("cache")};
  test::SetVariable kernels_{"DEFT_FAKE_CUDA_VARIANT", "4,2,64,16,bf16,0.25,2,2"};
  std::string path_ = folder_.path("p.deftpkg"), tree_ = folder_.path("tree.json");
};

TEST_F(TuneSparseTest, WhatIsTunedIsToldAndWhatRunsTakesIt) {
  const Outcome before = run();
  ASSERT_EQ(before.code, 0) << before.err;
  EXPECT_THAT(before.out,
              HasSubstr("tiles of 64 tokens, 2 stages, 4 warps; items of 128 tokens, by the rule"));

  const std::string page = folder_.path("page.html");
  const Outcome tuned = tune({"--sparse", "--report", page});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("report: " + page));
  EXPECT_THAT(module_cache::readText(page), HasSubstr("<h2>host_selecting on "));
  EXPECT_THAT(module_cache::readText(page), HasSubstr("12 kinds of lists are tuned, "));
  EXPECT_THAT(tuned.out, HasSubstr("sparse layers, "));
  EXPECT_THAT(tuned.out, HasSubstr("a package has one kernel for them, so only cuts are tuned"));
  EXPECT_THAT(tuned.out, HasSubstr("  budget  queries    rule us  tuned us     gain  items of\n"));
  EXPECT_THAT(tuned.out, HasSubstr("tokens, by the rule\n"));
  EXPECT_THAT(tuned.out, HasSubstr("complete; 12 kinds of lists tuned, "));
  ASSERT_NE(file(), "");
  EXPECT_THAT(tuned.out, HasSubstr("kept in " + file()));
  const Outcome again = tune({"--sparse"});
  EXPECT_THAT(again.out, HasSubstr("complete; 0 kinds of lists tuned, 12 known before, "));

  // All take as long here, so a cut that is faster has to be made up.
  auto text = nlohmann::json::parse(module_cache::readText(file()));
  ASSERT_EQ(text["entries"][0]["cuts"][1]["queries"], 2);
  text["entries"][0]["cuts"][1]["item_tokens"] = 64;
  module_cache::writeText(file(), text.dump());
  const Outcome after = run({"--check"});
  ASSERT_EQ(after.code, 0) << after.err;
  EXPECT_THAT(after.out, HasSubstr("items of 64 tokens, as tuned"));
  EXPECT_THAT(after.out, HasSubstr("right: "));
  EXPECT_THAT(run({"--untuned"}).out, HasSubstr("items of 128 tokens, by the rule"));
  const auto json = nlohmann::json::parse(run({"--json", "-"}).out);
  EXPECT_EQ(json["select"]["sparse"]["item_tokens"], 64);
  EXPECT_EQ(json["select"]["sparse"]["is_tuned_cut"], true);

  const Outcome told = test::runDeftc({"explain", path_, "--tree", tree_, "--backend", "cuda"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("sparse    tiles of 64 tokens, 2 stages, 4 warps, those of the package\n"));
  EXPECT_THAT(
      told.out,
      HasSubstr("budget 80: items of 64 tokens for 2 queries, the rule's for 11 numbers of queries: "));
  EXPECT_THAT(told.out, HasSubstr(": " + file() + "\n"));
  const auto toldJson = nlohmann::json::parse(
      test::runDeftc({"explain", path_, "--tree", tree_, "--backend", "cuda", "--json"}).out);
  EXPECT_EQ(toldJson["sparse"]["lists"][0]["cuts"][1]["item_tokens"], 64);
}

TEST_F(TuneSparseTest, BehindTreesItIsKeptInTheirJournal) {
  if (const auto nvrtc = nvrtc::Nvrtc::load(); !nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const std::string journal = folder_.path("journal.jsonl"), page = folder_.path("page.html");
  std::vector<std::string> trees{"--tree",       tree_,      "--backend", "cuda",  "--as-given",
                                 "--candidates", "1",        "--journal", journal, "--report",
                                 page,           "--budget", "8s"};
  for (const char *one : {"partition=node", "chunk_tokens=0", "shape=sm80", "tile_q=16", "tile_kv=64",
                          "stages=2", "warps=4", "prices=machine"}) // few kernels to compile
    trees.insert(trees.end(), {"--axis", one});
  const Outcome tuned = tune(trees);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("\nsparse layers, "));
  EXPECT_THAT(module_cache::readText(page), HasSubstr("<h3>Sparse layers</h3>"));
  const Outcome report = test::runDeftc({"report", journal, "-o", "-"});
  EXPECT_THAT(report.out, HasSubstr("Lists are read by tiles of 64 tokens, 2 stages, 4 warps, those of the "
                                    "package, so only cuts are tuned. "));
}

TEST_F(TuneSparseTest, ABudgetEndsItAndTheSameCommandGoesOn) {
  const Outcome none = tune({"--sparse", "--budget", "0.001s"});
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("stopped by its budget; the same command continues it; 0 kinds"));
  EXPECT_EQ(file(), "");
}

TEST_F(TuneSparseTest, OnProcessorsThereIsNothingToTune) {
  const Outcome outcome = tune({"--sparse", "--backend", "cpu"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("sparse layers are tuned only on GPUs"));
  EXPECT_THAT(outcome.err, HasSubstr("on processors they have no tiles or cuts"));
}

TEST_F(TuneSparseTest, WhatSelectsNothingHasNone) {
  const Outcome outcome = test::runDeftc({"tune", "llama3_8b", "--sparse"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("has no sparse layers: it selects nothing"));
  EXPECT_EQ(tune({"--sparse", "--workload", "few_shot"}).code, kExitUsage);
  EXPECT_EQ(tune({"--sparse", "--calibrate"}).code, kExitUsage);
  EXPECT_EQ(tune({"--sparse", "--axis", "tile_q=16"}).code, kExitUsage);
}

} // namespace
} // namespace deft::cli
