#include "tools/deftc/common/FilesInUse.h"

#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/session/Journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace deft::cli {
namespace {

namespace fs = std::filesystem;
using module_cache::readText;
using module_cache::writeText;
using test::Outcome;
using test::runDeftc;
using testing::HasSubstr;

class FilesInUseTest : public testing::Test {
protected:
  FilesInUseTest() { ::setenv("DEFT_CACHE_DIR", path("cache").c_str(), 1); }

  std::string path(const std::string &name) const { return folder_.path(name); }
  std::string file(const std::string &name, const std::string &text = "x") const {
    writeText(path(name), text);
    return path(name);
  }

  module_cache::TestFolder folder_;
};

TEST_F(FilesInUseTest, AnOutputIsNoInputWhicheverIsToldFirst) {
  const std::string input = file("in");
  FilesInUse first;
  EXPECT_TRUE(first.reads(input));
  const auto refused = first.writes(input);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(refused.error().message,
            "`" + input + "` would be written over `" + input + "`, which this command reads");

  FilesInUse second;
  EXPECT_TRUE(second.writes(input));
  EXPECT_FALSE(second.reads(input));
}

TEST_F(FilesInUseTest, OtherNamesOfAFileAreSeenThrough) {
  const std::string input = file("in");
  fs::create_directory(path("folder"));
  fs::create_symlink(input, path("link"));
  fs::create_hard_link(input, path("hard"));
  fs::create_directory_symlink(folder_.path(), path("folder/up"));
  FilesInUse files;
  EXPECT_TRUE(files.reads(input));
  for (const char *name : {"link", "hard", "folder/../in", "folder/up/in", "./in"})
    EXPECT_FALSE(files.writes(path(name))) << name;
  for (const char *name : {"other", "folder/in", "in.new"})
    EXPECT_TRUE(files.writes(path(name))) << name;
}

TEST_F(FilesInUseTest, AnInputThatIsReplacedMeanwhileIsStillOne) {
  const std::string input = file("in");
  FilesInUse files;
  EXPECT_TRUE(files.reads(input));
  fs::remove(input);
  EXPECT_FALSE(files.writes(input));
  file("in"); // another inode, perhaps
  EXPECT_FALSE(files.writes(input));
}

TEST_F(FilesInUseTest, WhatIsNoFileMayBeBoth) {
  FilesInUse files;
  EXPECT_TRUE(files.reads("/dev/null"));
  EXPECT_TRUE(files.writes("/dev/null"));
  EXPECT_TRUE(files.reads("-"));
  EXPECT_TRUE(files.writes("-"));
  EXPECT_TRUE(files.reads(""));
  EXPECT_TRUE(files.writes(""));
}

TEST_F(FilesInUseTest, AFolderIsAllThatLiesInIt) {
  fs::create_directory(path("records"));
  const std::string record = file("records/one.json");
  FilesInUse files;
  EXPECT_TRUE(files.readsFolder(path("records")));
  EXPECT_TRUE(files.readsFolder(path("nowhere")));
  EXPECT_FALSE(files.writes(record));
  EXPECT_TRUE(files.writes(path("records/two.json")));
  EXPECT_FALSE(files.writesInto(path("records")));
  EXPECT_TRUE(files.writesInto(folder_.path()));
}

/// Each command with an output, given one of its inputs for it.
class OutputsTest : public FilesInUseTest {
protected:
  OutputsTest() {
    file("base.deft", "attention base { query_heads = 4; kv_heads = 2; head_dim = 64; }\n");
    file("spec.deft", "import \"base.deft\";\nattention a : base { kv_cache = contiguous; }\n");
    file("tree.json", R"({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 20}],
                          "queries": [{"node": 0}]})");
    file("config.json",
         R"({"partition": "union", "chunk_tokens": 0, "phases": [{"name": "tiles", "rows_above": -1,
      "family": "sm80", "tile_q": 64, "tile_kv": 64, "stages": 2, "warps": 4}]})");
    fs::copy_file(DEFT_TEST_PACKAGE, path("p.deftpkg"));
  }

  /// The command is refused, and `kept` is as it was.
  void expectRefused(const std::vector<std::string> &arguments, const std::string &kept) const {
    const std::string before = readText(path(kept));
    ASSERT_FALSE(before.empty()) << kept;
    const Outcome outcome = runDeftc(arguments);
    SCOPED_TRACE(arguments[0] + " over " + kept + ": " + outcome.err);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr("which this command reads"));
    EXPECT_EQ(readText(path(kept)), before);
  }
};

TEST_F(OutputsTest, PlanKeepsItsInputs) {
  for (const char *kept : {"spec.deft", "base.deft", "tree.json", "config.json"})
    expectRefused({"plan", path("spec.deft"), "--tree", path("tree.json"), "--config", path("config.json"),
                   "--as", "text", "-o", path(kept)},
                  kept);
  expectRefused(
      {"plan", path("p.deftpkg"), "--tree", path("tree.json"), "--as", "text", "-o", path("p.deftpkg")},
      "p.deftpkg");
  fs::create_symlink(path("tree.json"), path("link"));
  expectRefused({"plan", path("spec.deft"), "--tree", path("tree.json"), "-o", path("link")}, "tree.json");
  EXPECT_EQ(runDeftc({"plan", path("spec.deft"), "--tree", path("tree.json"), "-o", path("plan.txt")}).code,
            kExitOk);
}

TEST_F(OutputsTest, BuildAndEmitKeepTheSpecAndItsImports) {
  for (const char *kept : {"spec.deft", "base.deft"}) {
    expectRefused({"build", path("spec.deft"), "-o", path(kept)}, kept);
    expectRefused({"emit", path("spec.deft"), "--as", "json", "-o", path(kept)}, kept);
  }
}

TEST_F(OutputsTest, RunKeepsItsInputs) {
  for (const char *kept : {"p.deftpkg", "tree.json", "config.json"})
    expectRefused({"run", path("p.deftpkg"), "--tree", path("tree.json"), "--config", path("config.json"),
                   "--backend", "cpu", "--json", path(kept)},
                  kept);
  // A dump has files of its own names.
  expectRefused(
      {"run", path("p.deftpkg"), "--tree", path("tree.json"), "--backend", "cpu", "--dump", folder_.path()},
      "tree.json");
  EXPECT_FALSE(fs::exists(path("q.npy")));
}

TEST_F(OutputsTest, RunKeepsFilesOfParameters) {
  file("spec.deft", "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous;\n"
                    "  param slope : f32[query_heads]; score = s + slope[head]; }\n");
  file("slope.npy", "not looked into");
  if (test::runDeftc({"run", path("spec.deft"), "--tree", path("tree.json"), "--backend", "cpu"})
          .err.find("this build of deftc is without the compiler") != std::string::npos)
    GTEST_SKIP() << "this build compiles no spec";
  expectRefused({"run", path("spec.deft"), "--tree", path("tree.json"), "--param",
                 "slope=" + path("slope.npy"), "--backend", "cpu", "--json", path("slope.npy")},
                "slope.npy");
}

TEST_F(OutputsTest, TuneKeepsItsInputs) {
  file("session.jsonl");
  for (const char *kept : {"p.deftpkg", "tree.json", "config.json", "session.jsonl"})
    expectRefused({"tune", path("p.deftpkg"), "--tree", path("tree.json"), "--backend", "cpu",
                   "--config-file", path("config.json"), "--journal", path("session.jsonl"), "--report",
                   path(kept)},
                  kept);
  expectRefused({"tune", path("p.deftpkg"), "--tree", path("tree.json"), "--backend", "cpu", "--strategy",
                 "exhaustive", "--record", folder_.path()},
                "tree.json");
}

TEST_F(OutputsTest, TheRestKeepsItsInputs) {
  const auto journal = session::Journal::open(
      path("session.jsonl"), {{"event", "session"}, {"version", session::kJournalVersion}}, false);
  ASSERT_TRUE(journal) << journal.error().message;
  expectRefused({"report", path("session.jsonl"), "-o", path("session.jsonl")}, "session.jsonl");
  fs::create_directory(path("records"));
  file("records/one.json", "{}");
  expectRefused({"workloads", "few_shot", "--workloads", path("records"), "-o", path("records/one.json")},
                "records/one.json");
  expectRefused({"bench", "deft", "--io", "--workloads", path("records"), "--json", path("records/one.json")},
                "records/one.json");
}

} // namespace
} // namespace deft::cli
