// run, called as the program calls it: every shipped spec on the CPU against the oracle.
#include "runtime/exec/Params.h"
#include "specs/Embedded.h"
#include "tests/support/RunDeftc.h"
#include "tools/deftc/common/SpecInput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace deft::cli {
namespace {

using test::Outcome;

using testing::HasSubstr;

std::string treePath(const std::string &name) { return std::string(DEFT_TEST_TREES) + "/" + name + ".json"; }

/// A run on the CPU with the check, one timed run, and `more` behind.
Outcome run(const std::string &spec, const std::string &tree, const std::vector<std::string> &more = {}) {
  std::vector<std::string> arguments = {"run",     spec,       "--tree", treePath(tree), "--backend", "cpu",
                                        "--check", "--repeat", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::runDeftc(arguments);
}

/// `--param` options for what has no default.
std::vector<std::string> neededParams(const spec::Variant &variant) {
  std::vector<std::string> options;
  for (const spec::Param &param : variant.params)
    if (!param.defaultValue) {
      options.push_back("--param");
      options.push_back(param.name + (param.type == spec::ScalarType::F32 ? "=0.05" : "=64"));
    }
  return options;
}

TEST(RunCommandTest, EveryShippedSpecIsRightOnTheCpu) {
  int runs = 0;
  for (const specs::EmbeddedSpec &shipped : specs::embeddedSpecs()) {
    if (shipped.name == "library")
      continue;
    std::ostringstream out, err;
    Context context{out, err, false, false, {}};
    const auto spec = loadSpec(context, std::string(shipped.name));
    ASSERT_TRUE(spec) << err.str();
    for (const spec::Variant &variant : (*spec)->variants) {
      const std::string input = std::string(shipped.name) + "#" + variant.name;
      // Partials and pages out of order; queries that end inside nodes; runs of one token.
      const std::pair<const char *, std::vector<std::string>> cases[] = {
          {"random", {"--chunk", "48", "--pages", "scattered", "--seed", "5"}},
          {"queries_inside_nodes", {}},
          {"token_tree", {"--pages", "scattered"}},
      };
      for (auto [tree, options] : cases) {
        const std::vector<std::string> params = neededParams(variant);
        options.insert(options.end(), params.begin(), params.end());
        const Outcome outcome = run(input, tree, options);
        EXPECT_EQ(outcome.code, kExitOk) << input << " on " << tree << '\n' << outcome.out << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("right: error "));
        ++runs;
      }
    }
  }
  EXPECT_GE(runs, 3 * 13);
}

TEST(RunCommandTest, EveryTestTreeIsRight) {
  for (const auto &entry : std::filesystem::directory_iterator(DEFT_TEST_TREES)) {
    const std::string tree = entry.path().stem().string();
    const Outcome outcome = run("speculative_verify", tree, {"--chunk", "64", "--threads", "2"}); // with lse
    EXPECT_EQ(outcome.code, kExitOk) << tree << '\n' << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("lse off by"));
    EXPECT_THAT(outcome.out, HasSubstr("; each token of each row counted"));
  }
}

TEST(RunCommandTest, StepsOfAWorkloadAreAdvancedAndRight) {
  std::string report = testing::TempDir() + "/deft-run-XXXXXX";
  const int file = ::mkstemp(report.data());
  ASSERT_GE(file, 0);
  ::close(file);
  const Outcome outcome = test::runDeftc(
      {"run", "speculative_verify", "--workload", "few_shot:prompt=100,branches=3", "--steps", "8",
       "--partition", "node", "--backend", "cpu", "--repeat", "1", "--check-all", "--json", report});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("planned anew 2 times"));
  EXPECT_THAT(outcome.out, HasSubstr("advanced 6 times"));
  const auto json = nlohmann::json::parse(std::ifstream(report));
  std::filesystem::remove(report);
  EXPECT_EQ(json.at("steps").size(), 8u);
  // The branches are born empty: their first tokens, in the second step, give them a place in the cache.
  for (std::size_t step = 2; step < 8; ++step)
    EXPECT_TRUE(json.at("steps").at(step).at("advanced").get<bool>()) << step;
  EXPECT_EQ(json.at("plan").at("partition"), "node");
  EXPECT_EQ(json.at("check").at("queries_checked"), 8 * 3);
  const auto &count = json.at("check").at("count");
  EXPECT_EQ(count.at("passes"), count.at("all_passes"));
  EXPECT_GT(count.at("pairs"), 0);
  EXPECT_EQ(count.at("told"), count.at("pairs"));
  EXPECT_EQ(count.at("wrong_rows"), 0);
  EXPECT_GT(json.at("read").at("gb_per_s").get<double>(), 0);
  EXPECT_GT(json.at("plan_bytes").get<double>(), json.at("cache_bytes").get<double>());
}

TEST(RunCommandTest, EveryWorkloadIsRightForSomeSteps) {
  for (const char *workload : {"beam_search:prompt=64", "token_tree:prompt=50", "mixture"}) {
    const Outcome outcome =
        test::runDeftc({"run", "head_dims#heads_64", "--workload", workload, "--steps", "4", "--backend",
                        "cpu", "--repeat", "1", "--check", "--pages", "scattered", "--seed", "2"});
    EXPECT_EQ(outcome.code, kExitOk) << workload << outcome.out << outcome.err;
  }
}

TEST(RunCommandTest, APackageRunsAsItsSpecDoes) {
  std::string folder = testing::TempDir() + "/deft-run-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string package = folder + "/mistral.deftpkg", report = folder + "/report.json";
  const Outcome built = test::runDeftc({"build", "mistral_7b", "--cpu", "-o", package});
  ASSERT_EQ(built.code, kExitOk) << built.err;
  const Outcome outcome = run(package, "random", {"--json", "-"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out); // and no text before it
  EXPECT_EQ(json.at("spec").at("name"), "mistral_7b");
  EXPECT_TRUE(json.at("check").at("passed").get<bool>());
  std::filesystem::remove_all(folder);
}

TEST(RunCommandTest, AnAttentionThatSelectsIsRunInAllThreeWays) {
  std::string folder = testing::TempDir() + "/deft-run-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string spec = folder + "/a.deft", dump = folder + "/out";
  std::ofstream(spec) << "attention a { query_heads = 6; kv_heads = 2; head_dim = 64;\n"
                         "  select { budget = 40; keep_first = 2; keep_last = 4; } }\n";
  const Outcome outcome = run(spec, "random", {"--json", "-", "--dump", dump, "--pages", "scattered"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto &select = json.at("select");
  EXPECT_EQ(select.at("budget"), 40);
  EXPECT_GT(select.at("mean_tokens").get<double>(), 2);
  EXPECT_TRUE(select.at("check").at("passed").get<bool>());
  EXPECT_EQ(select.at("check").at("lists"), select.at("lists"));
  EXPECT_TRUE(std::filesystem::exists(dump + "/selected.npy"));
  EXPECT_TRUE(std::filesystem::exists(dump + "/sparse_out.npy"));
  EXPECT_THAT(run(spec, "random").out, HasSubstr("lists, 100.000 % of their tokens those of an exact sort"));
  std::filesystem::remove_all(folder);
}

TEST(RunCommandTest, WrongCallsSayWhatIsMissing) {
  const Outcome noParam = run("mpt_7b_alibi", "random");
  EXPECT_EQ(noParam.code, kExitUsage);
  EXPECT_THAT(noParam.err, HasSubstr("parameter `slope` (f32[query_heads]) needs a value"));
  EXPECT_THAT(noParam.err, HasSubstr("--param slope=FILE.npy"));

  const Outcome noPlace = run("mistral_7b", "random", {"--json", "/no/such/folder/file"});
  EXPECT_EQ(noPlace.code, kExitEnvironment);
  EXPECT_EQ(noPlace.out, "") << "it is said before anything runs";

  const Outcome two = run("head_dims#heads_64", "random", {"--variant", "heads_80"});
  EXPECT_EQ(two.code, kExitUsage);
  EXPECT_THAT(two.err, HasSubstr("names one attention, --variant heads_80 another"));

  const Outcome unknown = run("head_dims#heads_81", "random");
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("defines no attention `heads_81`"));

  const Outcome noTree = run("llama3_8b", "there_is_none");
  EXPECT_NE(noTree.code, kExitOk);
  EXPECT_THAT(noTree.err, HasSubstr("there_is_none.json"));

  EXPECT_EQ(run("llama3_8b", "random", {"--backend", "tpu"}).code, kExitUsage);
  EXPECT_EQ(run("llama3_8b", "random", {"--workload", "few_shot"}).code, kExitUsage); // a tree or a workload
  EXPECT_EQ(test::runDeftc({"run", "llama3_8b"}).code, kExitUsage);
  EXPECT_EQ(run("llama3_8b", "random", {"--partition", "tree"}).code, kExitUsage);

  const Outcome twoSteps = run("llama3_8b", "random", {"--steps", "2"});
  EXPECT_EQ(twoSteps.code, kExitUsage);
  EXPECT_THAT(twoSteps.err, HasSubstr("has 1 steps, not 2"));

  const Outcome noFolder = run("llama3_8b", "random", {"--dump", "/proc/none"});
  EXPECT_EQ(noFolder.code, kExitEnvironment);
  EXPECT_THAT(noFolder.err, HasSubstr("/proc/none"));
}

} // namespace
} // namespace deft::cli
