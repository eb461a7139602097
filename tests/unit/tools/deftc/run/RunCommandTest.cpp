// run, called as the program calls it: every shipped spec on the CPU against the oracle.
#include "runtime/doctor/Features.h"
#include "runtime/exec/Params.h"
#include "specs/Embedded.h"
#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tools/deftc/common/SpecInput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
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

/// The support table says that processors run them all.
TEST(RunCommandTest, EveryFeatureOfTheSupportTableIsRightOnTheCpu) {
  const module_cache::TestFolder folder;
  for (const doctor::Feature &feature : doctor::kFeatures) {
    const std::string path = folder.path(std::string(feature.name) + ".deft");
    module_cache::writeText(path, std::string(feature.spec));
    std::ostringstream out, err;
    Context context{out, err, false, false, {}};
    const auto spec = loadSpec(context, path);
    ASSERT_TRUE(spec) << err.str();
    std::vector<std::string> options = neededParams((*spec)->variants.front());
    options.insert(options.end(), {"--threads", "2"});
    const Outcome outcome = run(path, "queries_inside_nodes", options);
    EXPECT_EQ(outcome.code, kExitOk) << feature.name << '\n' << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("right: error ")) << feature.name;
  }
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

/// A run of an attention with this line, of 4 heads over 2.
Outcome runLine(const std::string &line) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path() + "/a.deft";
  std::ofstream(path)
      << "attention a { query_heads = 4; kv_heads = 2; head_dim = 32; output = bf16 with lse; " << line
      << " }";
  return run(path, "random");
}

/// Rules A9 and A10: what other attentions do, on trees with drafts, partials and runs of one token.
TEST(RunCommandTest, LatentCachesAndUnlikeDimsTakeWhatOthersDo) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path() + "/a.deft";
  const std::string tensors[] = {
      "kv_cache = latent(dim = 64, rope = 16, page_size = 7); scale = 0.2;",
      "kv_cache = latent(dim = 32, rope = 32, dtype = fp8_e4m3); scale = 0.2; dtype = f16;",
      "kv_heads = 2; key_dim = 48; value_dim = 80;",
      "kv_heads = 6; key_dim = 96; value_dim = 64; kv_cache = contiguous;",
  };
  const std::string items[] = {
      "output = bf16 with lse;",
      "mask = tree && sliding_window(20); score = softcap(s, 2.0);",
      "mask = path && prefix_lm(30); output = f16 with lse;",
      "param logit : f32[query_heads]; normalize = softmax with sink(logit[head]); output = x * dim as bf16 "
      "with lse;",
      "normalize = sigmoid(-2.5); value = x * (1 + 0.25 * (kv_pos % 3));",
      "param gain : f32[tokens]; query = rotate_pairs(x, x_pair, 0.01 * pos); score = s * gain[token];",
      "select { budget = 24; keep_first = 2; keep_last = 4; }",
      "mask = tree && sliding_window(40); select { budget = 16; by = query_head; }",
  };
  for (const std::string &tensor : tensors)
    for (const std::string &item : items) {
      std::ofstream(path) << "import \"library.deft\"; attention a { query_heads = 6; " << tensor << ' '
                          << item << " }";
      for (const char *tree : {"queries_inside_nodes", "token_tree"}) {
        std::vector<std::string> options = {"--chunk", "48", "--seed", "7"};
        if (tensor.find("contiguous") == std::string::npos)
          options.insert(options.end(), {"--pages", "scattered"});
        if (item.find("logit") != std::string::npos)
          options.insert(options.end(), {"--param", "logit=0.5"});
        const Outcome outcome = run(path, tree, options);
        EXPECT_EQ(outcome.code, kExitOk) << tensor << item << " on " << tree << '\n'
                                         << outcome.out << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("right: error "));
      }
    }
}

TEST(RunCommandTest, AMaskThatShowsNothingIsAWarning) {
  for (const std::string mask : {"kv_pos > q_pos", "kv_pos % 7 == 9"}) { // which plans know, and do not
    const Outcome outcome = runLine("mask = " + mask + ";");
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("warning: no row sees a token, so the check proves nothing"));
  }
  EXPECT_EQ(runLine("mask = kv_pos >= q_pos;").err, "");
}

TEST(RunCommandTest, WhatTheSpecLeavesUndefinedIsNotCalledWrong) {
  const Outcome outcome = runLine("score = s / 0;");
  EXPECT_EQ(outcome.code, kExitDiagnostics);
  EXPECT_THAT(outcome.out, HasSubstr("UNDEFINED: query 0, head "));
  EXPECT_THAT(outcome.err, HasSubstr("the spec itself gives NaN or an infinity"));
  EXPECT_THAT(outcome.out + outcome.err, testing::Not(HasSubstr("WRONG")));
}

TEST(RunCommandTest, StepsOfAWorkloadAreAdvancedAndRight) {
  std::string report = testing::TempDir() + "/deft-run-XXXXXX";
  const int file = ::mkstemp(report.data());
  ASSERT_GE(file, 0);
  ::close(file);
  const Outcome outcome = test::runDeftc(
      {"run", "speculative_verify", "--workload", "few_shot:prompt=100,branches=3", "--steps", "8",
       "--partition", "node", "--backend", "cpu", "--repeat", "1", "--check=all", "--json", report});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("planned again 2 times"));
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

std::string bytesOf(const std::string &path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

/// A folder with the dump of a run with parameters, and its outcome.
class Dumped : public testing::Test {
protected:
  void SetUp() override {
    const Outcome outcome =
        run("mpt_7b_alibi", "random",
            {"--param", "slope=0.0625", "--threads", "1", "--seed", "7", "--dump", first()});
    ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  }
  std::string first() const { return folder_.path("first"); }
  std::string second() const { return folder_.path("second"); }

  Outcome again(const std::string &spec, const std::vector<std::string> &more = {}) const {
    std::vector<std::string> arguments = {"run",       spec, "--inputs", first(), "--backend", "cpu",
                                          "--threads", "1",  "--repeat", "1",     "--check"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::runDeftc(arguments);
  }

  module_cache::TestFolder folder_;
};

TEST_F(Dumped, IsRunAgainAndGivesTheSameOutput) {
  const Outcome outcome = again("mpt_7b_alibi", {"--dump", second()});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(", inputs of " + first()));
  EXPECT_THAT(outcome.out, HasSubstr("right: error "));
  for (const char *name : {"q.npy", "k.npy", "v.npy", "out.npy", "tree.json", "spec.json"}) {
    const std::string was = bytesOf(first() + "/" + name);
    EXPECT_FALSE(was.empty()) << name;
    EXPECT_TRUE(was == bytesOf(second() + "/" + name)) << name;
  }
}

TEST_F(Dumped, ValuesGivenOnTheCommandLineGoFirst) {
  const Outcome outcome = again("mpt_7b_alibi", {"--param", "slope=0.5", "--dump", second()});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.out << outcome.err;
  EXPECT_FALSE(bytesOf(first() + "/out.npy") == bytesOf(second() + "/out.npy"));
  const auto spec = nlohmann::json::parse(bytesOf(second() + "/spec.json"));
  EXPECT_EQ(spec.at("params").at("slope").at(0), 0.5);
}

// JSON has no infinity.
TEST_F(Dumped, AnInfiniteDefaultIsRunAgain) {
  const std::string path = folder_.path("sink.deft");
  module_cache::writeText(path,
                          "attention s { query_heads = 2; kv_heads = 1; head_dim = 16; param z : f32 = -inf;"
                          " normalize = softmax with sink(z); }");
  for (const std::vector<std::string> &what :
       {std::vector<std::string>{"--tree", treePath("random"), "--dump", second()}, {"--inputs", second()}}) {
    std::vector<std::string> arguments = {"run", path, "--backend", "cpu", "--repeat", "1", "--check"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    const Outcome outcome = test::runDeftc(arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  }
  EXPECT_EQ(nlohmann::json::parse(bytesOf(second() + "/spec.json")).at("params").at("z").at(0), "-inf");
}

TEST_F(Dumped, IsNotWrittenOver) {
  const Outcome outcome = again("mpt_7b_alibi", {"--dump", first()});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("which this command reads"));
}

TEST_F(Dumped, WhatDoesNotFitIsNamed) {
  const Outcome params = again("qwen2_5_7b");
  EXPECT_EQ(params.code, kExitDiagnostics);
  EXPECT_THAT(params.err, HasSubstr("`qwen2_5_7b` has no parameter `slope`\n  = hint: it has no parameters"));

  auto spec = nlohmann::json::parse(bytesOf(first() + "/spec.json"));
  spec["params"]["slope"].push_back(1);
  std::ofstream(first() + "/spec.json") << spec.dump();
  EXPECT_THAT(again("mpt_7b_alibi").err, HasSubstr("parameter `slope` is not a list of 32 finite numbers"));
  spec["params"] = {{"slop", {0.5}}};
  std::ofstream(first() + "/spec.json") << spec.dump();
  EXPECT_THAT(again("mpt_7b_alibi").err,
              HasSubstr("`mpt_7b_alibi` has no parameter `slop`\n  = hint: did you mean `slope`?"));
  std::filesystem::remove(first() + "/spec.json"); // another program need not write it
  const Outcome shapes = again("qwen2_5_7b");
  EXPECT_EQ(shapes.code, kExitDiagnostics);
  EXPECT_THAT(shapes.err, HasSubstr("/q.npy` has shape ("));
  EXPECT_THAT(shapes.err, HasSubstr("queries of the tree, query heads, columns of the spec"));
  EXPECT_THAT(again("mpt_7b_alibi").err, HasSubstr("parameter `slope` (f32[query_heads]) needs a value"));
  EXPECT_EQ(again("mpt_7b_alibi", {"--param", "slope=0.0625"}).code, kExitOk);

  std::filesystem::remove(first() + "/k.npy");
  const Outcome missing = again("mpt_7b_alibi", {"--param", "slope=0.0625"});
  EXPECT_EQ(missing.code, kExitEnvironment);
  EXPECT_THAT(missing.err, HasSubstr("cannot read `" + first() + "/k.npy`: No such file or directory"));

  EXPECT_EQ(test::runDeftc({"run", "mpt_7b_alibi", "--inputs", "/nowhere"}).code, kExitEnvironment);
  EXPECT_EQ(again("mpt_7b_alibi", {"--tree", treePath("random")}).code, kExitUsage);
}

// NaN that comes in comes out, of a right kernel, too, and counting inputs would tell of lost tokens.
TEST_F(Dumped, ANumberThatTheTypeDoesNotHoldIsNamed) {
  const std::string path = first() + "/q.npy", whole = bytesOf(path);
  for (const auto &[value, text] : {std::pair(std::nanf(""), "nan"),
                                    {std::numeric_limits<float>::infinity(), "inf"},
                                    {-3.4e38F, "-3.4e+38"}}) {
    std::string bytes = whole;
    std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
    std::ofstream(path, std::ios::binary) << bytes;
    const Outcome outcome = again("mpt_7b_alibi", {"--param", "slope=0.0625"});
    EXPECT_EQ(outcome.code, kExitDiagnostics);
    EXPECT_THAT(outcome.err, HasSubstr("q.npy` holds " + std::string(text) +
                                       " in query 26, head 31, which is not a finite number of type "));
  }
}

// Nothing is computed for a dump that cannot be written: not even the spec is looked for.
TEST(RunCommandTest, WhereADumpCannotBeWrittenIsSaidFirst) {
  const module_cache::TestFolder folder;
  module_cache::writeText(folder.path("file"), "");
  std::filesystem::create_directories(folder.path("there/out.npy"));
  for (const auto &[dump, says] :
       {std::pair(folder.path("file"),
                  "cannot make the folder `" + folder.path("file") + "`: Not a directory"),
        {folder.path("file/below/it"), "cannot make the folder `" + folder.path("file/below/it") + "`: "},
        {folder.path("there"), "cannot write `" + folder.path("there/out.npy") + "`: Is a directory"}}) {
    const Outcome outcome = run("nowhere.deft", "random", {"--dump", dump});
    EXPECT_EQ(outcome.code, kExitEnvironment);
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
  EXPECT_THAT(run("nowhere.deft", "random", {"--dump", folder.path("new/below")}).err,
              HasSubstr("nowhere.deft"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("new"))) << "it is made when there is something in it";
}

// What a mask hides is not read, and no run is faster than a read of what it reads.
TEST(RunCommandTest, FiguresAreOfWhatWasRead) {
  std::string folder = testing::TempDir() + "/deft-run-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string spec = folder + "/window.deft", report = folder + "/report.json";
  std::ofstream(spec) << "attention near { query_heads = 8; kv_heads = 2; head_dim = 64;"
                         " mask = tree && kv_pos > q_pos - 64; }";
  const Outcome outcome = test::runDeftc({"run", spec, "--workload", "few_shot:prompt=6000,branches=2",
                                          "--backend", "cpu", "--repeat", "1", "--json", report});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto json = nlohmann::json::parse(std::ifstream(report));
  constexpr double kTokenBytes = 2 * 64 * 2 * 2;
  EXPECT_GE(json.at("read_bytes").get<double>(), json.at("cache_bytes").get<double>());
  EXPECT_LT(json.at("read_bytes").get<double>(), 256 * kTokenBytes) << "of 6,000 tokens";
  EXPECT_GT(json.at("read").at("share").get<double>(), 0);
  EXPECT_LE(json.at("read").at("share").get<double>(), 1);
  EXPECT_THAT(outcome.out, HasSubstr("of cache read"));
  std::filesystem::remove_all(folder);
}

// Whatever this machine is: both are told nothing of it.
TEST(RunCommandTest, PlanShowsThePlanThatIsRun) {
  for (const char *spec : {"llama3_8b", "mistral_7b"})
    for (const char *workload : {"few_shot:prompt=300,branches=5", "token_tree:prompt=50"}) {
      SCOPED_TRACE(std::string(spec) + " on " + workload);
      const Outcome shown = test::runDeftc({"plan", spec, "--workload", workload, "--as", "json"});
      const Outcome outcome =
          test::runDeftc({"run", spec, "--workload", workload, "--repeat", "1", "--json", "-"});
      ASSERT_EQ(shown.code, kExitOk) << shown.err;
      ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
      const auto plan = nlohmann::json::parse(shown.out), ran = nlohmann::json::parse(outcome.out);
      EXPECT_EQ(plan.at("config"), ran.at("config"));
      EXPECT_EQ(plan.at("partition"), ran.at("plan").at("partition"));
      EXPECT_EQ(plan.at("items").size(), ran.at("plan").at("items"));
      EXPECT_EQ(plan.at("partial_slots"), ran.at("plan").at("partial_slots"));
    }
}

TEST(RunCommandTest, ASampleIsCalledOne) {
  const std::vector<std::string> large = {
      "run", "llama3_8b", "--workload", "few_shot:prompt=8000,branches=100", "--backend", "cpu", "--threads",
      "1",   "--repeat",  "1"};
  auto sampled = large;
  sampled.push_back("--check");
  const Outcome outcome = test::runDeftc(sampled);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("; a sample of [0-9]+ of 100 queries"));
  EXPECT_THAT(outcome.out, HasSubstr("(--check=all checks all)"));
  auto wrong = large;
  wrong.push_back("--check=most");
  EXPECT_THAT(test::runDeftc(wrong).err, HasSubstr("`most` is not `all`"));
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
  EXPECT_THAT(run(spec, "random").out, HasSubstr("lists, 100.000 % of their tokens equal an exact sort's"));
  std::filesystem::remove_all(folder);
}

TEST(RunCommandTest, ABudgetIsOneOfThoseThatTheSpecNames) {
  std::string folder = testing::TempDir() + "/deft-run-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string spec = folder + "/a.deft";
  std::ofstream(spec) << "attention a { query_heads = 2; kv_heads = 2; head_dim = 32;\n"
                         "  select { budget = tune(16, 8); keep_first = 1; keep_last = 1; } }\n";
  const auto budgetOf = [&](const std::vector<std::string> &more) {
    std::vector<std::string> all{"--json", "-", "--check"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = run(spec, "random", all);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("select").at("budget").get<int>();
  };
  EXPECT_EQ(budgetOf({}), 16);
  EXPECT_EQ(budgetOf({"--budget", "8"}), 8);

  const Outcome unknown = run(spec, "random", {"--budget", "9"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("a budget of 9 is none of `a`'s: 16, 8"));
  const Outcome none = run("mistral_7b", "random", {"--budget", "8"});
  EXPECT_EQ(none.code, kExitUsage);
  EXPECT_THAT(none.err, HasSubstr("`mistral_7b` selects nothing"));
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
