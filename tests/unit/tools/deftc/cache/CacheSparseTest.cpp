// deftc cache over files of sparse layers, beside those of configs, in a home of its own.
#include "tools/deftc/cache/CacheSparse.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "tests/support/RunDeftc.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/config_cache/SparseTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>

namespace deft::cli {
namespace {

using config_cache::h100;
using config_cache::h200;
using config_cache::someSparseEntry;
using config_cache::SparseEntry;
using module_cache::readText;
using module_cache::writeText;
using nlohmann::json;
using test::Outcome;
using test::runDeftc;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

SparseEntry staleEntry(int budget) {
  SparseEntry entry = someSparseEntry(budget);
  entry.provenance.kernelHash = "0123456789abcdef";
  return entry;
}

class CacheSparseTest : public testing::Test {
protected:
  CacheSparseTest()
      : cache_("DEFT_CACHE_DIR", folder_.path("cache")), configs_("DEFT_CONFIG_PATH", std::nullopt) {}

  std::string userPath() const { return folder_.path("cache/sparse/" + h200().fileName()); }
  void save(const std::vector<SparseEntry> &entries, const std::string &path = {},
            const config_cache::DeviceKey &device = h200()) const {
    const auto saved = saveSparse(config_cache::defaultPlaces(), device, entries, path);
    ASSERT_TRUE(saved) << saved.error().message;
  }
  void saveConfig(const std::string &path) const {
    ASSERT_TRUE(mergeWrite(path, config_cache::Owner::User, h200(), {config_cache::someEntry()}));
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_, configs_;
};

TEST_F(CacheSparseTest, ListShowsItsFilesBesideThoseOfConfigs) {
  save({someSparseEntry(), staleEntry(1024)});
  const Outcome list = runDeftc({"cache", "list"});
  EXPECT_THAT(list.out, HasSubstr("user       NVIDIA H200 (sm_90, 132 multiprocessors): 2 entries of sparse "
                                  "layers, 1 stale\n           " +
                                  userPath() + "\n"));
  EXPECT_THAT(list.out, Not(HasSubstr("there are no configs")));
  saveConfig(folder_.path("cache/configs/" + h200().fileName()));
  const json files = json::parse(runDeftc({"cache", "list", "--json"}).out);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0]["format"], "deftc-configs");
  EXPECT_EQ(files[1]["format"], "deft-sparse");
  EXPECT_EQ(files[1]["origin"], "user");
  EXPECT_EQ(files[1]["state"], "good");
  EXPECT_EQ(files[1]["device"]["name"], "NVIDIA H200");
  EXPECT_EQ(files[1]["entries"], 2);
  EXPECT_EQ(files[1]["stale"], 1);
  writeText(userPath(), "{");
  EXPECT_THAT(runDeftc({"cache", "list"}).out, HasSubstr("broken, not used\n           " + userPath()));
}

TEST_F(CacheSparseTest, ShowTellsTilesCutsAndWhatTheyGained) {
  SparseEntry entry = someSparseEntry(), ofPackage = staleEntry(1024);
  entry.cuts = {{1, 128, 10, 11, 0.01}, {8, 0, 30, 30, 0.02}, {16, 1024, 50, 55, 0}};
  ofPackage.isChosen = false;
  ofPackage.cuts = {{1, 0, 10, 10, 0}};
  save({entry, ofPackage});
  const Outcome show = runDeftc({"cache", "show"});
  EXPECT_EQ(show.code, kExitOk);
  EXPECT_EQ(
      show.out,
      "NVIDIA H200 (sm_90, 132 multiprocessors), user, " + userPath() +
          "\n"
          "q32-kv8-d128-bf16-p16nhd-plain\n"
          "  sparse layers, lists of 1,024 tokens by kv_head: 1.00 times the speed of the rules, on average "
          "over 1 number of queries; 2026-11-27; stale\n"
          "      tiles of 128 tokens, 2 stages, 4 warps, a package's; the rule's for 1 number of "
          "queries\n"
          "  sparse layers, lists of 4,096 tokens by kv_head: 1.07 times the speed of the rules, on average "
          "over 3 numbers of queries; 2026-11-27\n"
          "      tiles of 128 tokens, 2 stages, 4 warps, chosen; items of 128 tokens for 1 query, 1,024 "
          "tokens for 16 queries, the rule's for 1 number of queries\n");
  for (const std::vector<std::string> &others :
       {std::vector<std::string>{"h100"}, {"--variant", "q64"}, {"--family", "few-shot"}}) {
    std::vector<std::string> command{"cache", "show"};
    command.insert(command.end(), others.begin(), others.end());
    EXPECT_EQ(runDeftc(command).out, "no entry matches\n") << others.back();
  }
  const json shown = json::parse(runDeftc({"cache", "show", "h200", "--json"}).out);
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0]["format"], "deft-sparse");
  EXPECT_EQ(shown[0]["stale"], true);
  EXPECT_EQ(shown[1]["budget"], 4096);
  EXPECT_NEAR(shown[1]["gain"].get<double>(), 1.0656, 1e-4);
  EXPECT_EQ(shown[1]["provenance"]["date"], "2026-11-27T08:30:00Z");
  EXPECT_EQ(shown[1]["path"], userPath());
}

TEST_F(CacheSparseTest, VerifyFindsWhatIsWrong) {
  save({someSparseEntry(), staleEntry(1024)});
  const Outcome right = runDeftc({"cache", "verify"});
  EXPECT_EQ(right.code, kExitOk);
  EXPECT_EQ(right.out, userPath() + ": ok, 2 entries of sparse layers of NVIDIA H200 (sm_90, 132 "
                                    "multiprocessors), 1 stale\n");
  SparseEntry illegal = someSparseEntry(512);
  illegal.stages = 9;
  save({illegal});
  const Outcome wrong = runDeftc({"cache", "verify"});
  EXPECT_EQ(wrong.code, kExitDiagnostics);
  EXPECT_THAT(wrong.out,
              HasSubstr("`q32-kv8-d128-bf16-p16nhd-plain kv_head 512 128x9x4` cannot be used: tiles of "
                        "128 tokens, 9 stages, 4 warps cannot be compiled\n"));
  std::filesystem::rename(userPath(), folder_.path("cache/sparse/other.json"));
  EXPECT_THAT(runDeftc({"cache", "verify"}).out, HasSubstr("it should be called sm_90-132-nvidia_h200.json"));
  const std::string named = folder_.path("named.json");
  writeText(named, R"({"format": "deft-sparse", "version": 3})");
  const Outcome unknown = runDeftc({"cache", "verify", named});
  EXPECT_EQ(unknown.code, kExitDiagnostics);
  EXPECT_EQ(unknown.out, "`" + named + "`: it is of version 3, this deftc knows 2\n");
}

TEST_F(CacheSparseTest, PruneRemovesWhatIsNamedAndNoMore) {
  SparseEntry illegal = someSparseEntry(512);
  illegal.stages = 9;
  save({someSparseEntry(), staleEntry(1024), illegal});
  EXPECT_THAT(runDeftc({"cache", "prune", "--all", "--dry-run"}).out,
              EndsWith(": 3 entries would be removed, 0 left\n"));
  EXPECT_THAT(runDeftc({"cache", "prune", "--all", "--variant", "q64"}).out,
              HasSubstr("0 entries removed, 3 left"));
  EXPECT_EQ(runDeftc({"cache", "prune", "--stale"}).out, userPath() + ": 1 entry removed, 2 left\n");
  EXPECT_THAT(runDeftc({"cache", "prune", "--illegal"}).out, HasSubstr("1 entry removed, 1 left"));
  json file = json::parse(readText(userPath()));
  file["entries"].push_back({{"of", "tomorrow"}});
  writeText(userPath(), file.dump());
  EXPECT_THAT(runDeftc({"cache", "prune", "--all", userPath()}).out,
              HasSubstr("1 entry removed, 0 left, beside 1 that is not understood\n"));
  writeText(userPath(), "{");
  const Outcome broken = runDeftc({"cache", "prune", "--all"});
  EXPECT_EQ(broken.code, kExitOk);
  EXPECT_THAT(broken.err, HasSubstr("it is left as it is"));
}

TEST_F(CacheSparseTest, MergeDoesNotDependOnTheOrderAndDoesNotMixKinds) {
  const std::string a = folder_.path("a.json"), b = folder_.path("b.json"), c = folder_.path("c.json");
  save({someSparseEntry()}, a);
  save({someSparseEntry(4096, 64), someSparseEntry(1024)}, b);
  saveConfig(c);
  const Outcome ab = runDeftc({"cache", "merge", a, b, "-o", "-"}),
                ba = runDeftc({"cache", "merge", b, a, "-o", "-"});
  EXPECT_EQ(ab.code, kExitOk) << ab.err;
  EXPECT_EQ(ab.out, ba.out);
  EXPECT_EQ(json::parse(ab.out)["entries"].size(), 3U);
  const Outcome mixed = runDeftc({"cache", "merge", c, a, "-o", "-"});
  EXPECT_EQ(mixed.code, kExitUsage);
  EXPECT_THAT(mixed.err, HasSubstr("`" + a + "` is of sparse layers, `" + c + "` is not"));
  EXPECT_THAT(mixed.err, HasSubstr("merge files of one kind"));
  EXPECT_EQ(runDeftc({"cache", "merge", a, folder_.path("nowhere.json"), "-o", "-"}).code, kExitEnvironment);
  const std::string other = folder_.path("other.json");
  save({someSparseEntry()}, other, h100());
  EXPECT_THAT(runDeftc({"cache", "merge", a, other, "-o", "-"}).err, HasSubstr("do not mix"));

  for (const std::string &output : {other, c}) { // another device's, and another kind
    const std::string before = readText(output);
    EXPECT_NE(runDeftc({"cache", "merge", a, b, "-o", output}).code, kExitOk);
    EXPECT_EQ(readText(output), before);
  }
  EXPECT_EQ(runDeftc({"cache", "merge", a, b, "-o", b}).code, kExitOk);
  EXPECT_EQ(readText(b), ab.out);
  const Outcome own = runDeftc({"cache", "merge", a, b});
  EXPECT_EQ(own.code, kExitOk) << own.err;
  EXPECT_EQ(own.out, userPath() + ": 3 entries added, 0 replaced, 0 already there or better\n");
  EXPECT_EQ(readText(userPath()), ab.out);
  EXPECT_THAT(runDeftc({"cache", "merge", a}).out, HasSubstr("0 entries added, 0 replaced, 1 already there"));
}

TEST_F(CacheSparseTest, RenewSaysWhatItLeaves) {
  const std::string spec = folder_.path("s.deft");
  writeText(spec, "attention sparse {\n  query_heads = 32;\n  kv_heads = 8;\n  head_dim = 128;\n"
                  "  kv_cache = paged(page_size = 16, order = nhd);\n  select { budget = 4096; }\n}\n");
  save({someSparseEntry(), staleEntry(1024)});
  const Outcome renewed = runDeftc({"cache", "renew", spec, "--device", "h200", "--dry-run"});
  EXPECT_THAT(renewed.out,
              HasSubstr("1 entry of sparse layers is stale: `deftc tune SPEC --sparse` finds them "
                        "again\n"))
      << renewed.err;
}

} // namespace
} // namespace deft::cli
