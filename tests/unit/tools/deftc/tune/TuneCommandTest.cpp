#include "runtime/config_cache/ConfigFile.h"
#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace deft::cli {
namespace {

using test::Outcome;
using testing::HasSubstr;

/// A home of its own for each test, and the package whose native code is plain C++.
class TuneCommandTest : public testing::Test {
protected:
  void SetUp() override { ::setenv("DEFT_CACHE_DIR", folder.path("cache").c_str(), 1); }
  void TearDown() override { ::unsetenv("DEFT_CACHE_DIR"); }

  Outcome tune(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"tune", DEFT_TEST_PACKAGE, "--backend", "cpu", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::runDeftc(arguments);
  }
  std::vector<std::string> small() const {
    return {"--workload",       "few_shot:prompt=200,branches=3,step=9", "--candidates", "4", "--axis",
            "chunk_tokens=0,64"};
  }

  /// Of a few seconds, in a journal that is `journal`.
  std::vector<std::string> longer() const {
    return {"--workload", "few_shot:prompt=200,branches=3,iterations=400", "--candidates", "32", "--journal",
            journal};
  }
  std::vector<std::string> longerWithBudget() const {
    std::vector<std::string> arguments = longer();
    arguments.insert(arguments.end(), {"--budget", "1s"});
    return arguments;
  }

  module_cache::TestFolder folder;
  const std::string journal = folder.path("journal.jsonl");
};

TEST_F(TuneCommandTest, AFileThatIsNoneOfConfigsIsRefusedBeforeAnythingIsMeasured) {
  const std::string theirs = folder.path("notes.txt");
  module_cache::writeText(theirs, "theirs\n");
  std::vector<std::string> arguments = small();
  arguments.insert(arguments.end(), {"--config-file", theirs});
  const Outcome outcome = tune(arguments);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("`" + theirs + "`: not valid JSON"));
  EXPECT_THAT(outcome.err, HasSubstr("; it is left as it is"));
  EXPECT_EQ(module_cache::readText(theirs), "theirs\n");
  EXPECT_EQ(module_cache::namesIn(folder.path()), (std::vector<std::string>{"notes.txt"}));
}

TEST_F(TuneCommandTest, TunesAndKeepsWhatLaterRunsUse) {
  const Outcome outcome = tune(small());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("c1-t8-q2-s1-d1-f0"));
  EXPECT_THAT(outcome.out, HasSubstr("complete; "));
  EXPECT_THAT(outcome.out, HasSubstr(" 0 reused"));
  EXPECT_THAT(outcome.err, HasSubstr("space: "));
  // The entry is in this device's file, and a run for such a tree says that it uses it.
  const Outcome run = test::runDeftc({"run", DEFT_TEST_PACKAGE, "--backend", "cpu", "--threads", "1",
                                      "--workload", "few_shot:prompt=200,branches=3,step=9"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("exact"));
  const Outcome untuned =
      test::runDeftc({"run", DEFT_TEST_PACKAGE, "--backend", "cpu", "--threads", "1", "--workload",
                      "few_shot:prompt=200,branches=3,step=9", "--untuned"});
  ASSERT_EQ(untuned.code, 0) << untuned.err;
  EXPECT_THAT(untuned.out, HasSubstr("heuristic"));
}

TEST_F(TuneCommandTest, ABudgetEndsASessionAndTheSameCommandGoesOn) {
  const Outcome first = tune(longerWithBudget());
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("stopped by its budget"));
  // The journal tells which classes there are, those too that nobody came to, and how to go on.
  const std::string events = module_cache::readText(journal);
  EXPECT_THAT(events, HasSubstr("\"classes\":[\"c1-"));
  EXPECT_THAT(events, HasSubstr("\"command\":\"deftc tune " + std::string(DEFT_TEST_PACKAGE)));
  const Outcome second = tune(longer());
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("goes on with " + journal));
  EXPECT_THAT(second.out, HasSubstr("complete; "));
  EXPECT_THAT(second.out, testing::Not(HasSubstr(" 0 reused")));
}

TEST_F(TuneCommandTest, AnInterruptedSessionKeepsItsJournalAndSaysSoByItsExitCode) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  Outcome first;
  {
    const std::jthread user([this](const std::stop_token &isOver) {
      const auto hasMeasured = [this] {
        return module_cache::readText(journal).find("\"measured\"") != std::string::npos;
      };
      while (!hasMeasured() && !isOver.stop_requested())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::raise(SIGINT);
    });
    first = tune(longer());
  }
  std::signal(SIGINT, before);
  EXPECT_EQ(first.code, 130) << first.err;
  EXPECT_THAT(first.out, HasSubstr("interrupted; the same command continues it"));
  const Outcome second = tune(longerWithBudget());
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("goes on with " + journal));
  EXPECT_THAT(second.out, testing::Not(HasSubstr(" 0 reused")));
}

TEST_F(TuneCommandTest, ShardsAreJoinedByCacheMerge) {
  const auto shardOf = [&](const std::string &shard, const std::string &to) {
    return tune({"--workload", "few_shot:prompt=200,branches=3,step=9", "--workload",
                 "few_shot:prompt=2000,branches=3,step=9", "--workload",
                 "few_shot:prompt=800,branches=12,step=9", "--candidates", "2", "--axis", "chunk_tokens=0,64",
                 "--shard", shard, "--journal", to});
  };
  const std::string first = folder.path("shard-0.jsonl"), second = folder.path("shard-1.jsonl");
  const Outcome one = shardOf("0/2", first);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("shard 0/2: 2 of 3 classes; deftc cache merge joins"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("cache/configs"))) << "only the journal is written";

  const Outcome missing = test::runDeftc({"cache", "merge", first});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("there is no journal of shard 1/2"));
  EXPECT_THAT(missing.err, HasSubstr("--partial"));
  const Outcome unwritten = test::runDeftc({"cache", "merge", first, second});
  EXPECT_THAT(unwritten.err, HasSubstr("there is no journal `" + second + "`"));

  ASSERT_EQ(shardOf("1/2", second).code, 0);
  const std::string merged = folder.path("merged.json");
  const Outcome toFile = test::runDeftc({"cache", "merge", second, first, "-o", merged});
  ASSERT_EQ(toFile.code, 0) << toFile.err;
  EXPECT_THAT(toFile.out, HasSubstr("2 shards of one session, 3 of 3 classes with a result"));
  EXPECT_EQ(config_cache::readConfigFile(merged).file.entries.size(), 3U);
  EXPECT_EQ(test::runDeftc({"cache", "merge", second, first, "-o", merged}).code, 0) << "over itself";
  const Outcome printed = test::runDeftc({"cache", "merge", second, first, "-o", "-"});
  EXPECT_EQ(printed.out, module_cache::readText(merged));
  const Outcome own = test::runDeftc({"cache", "merge", first, second});
  ASSERT_EQ(own.code, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("3 entries added"));
  const Outcome run = test::runDeftc({"run", DEFT_TEST_PACKAGE, "--backend", "cpu", "--threads", "1",
                                      "--workload", "few_shot:prompt=2000,branches=3,step=9"});
  EXPECT_THAT(run.out, HasSubstr("exact"));
  const Outcome page = test::runDeftc({"report", first, second, "-o", "-"});
  EXPECT_EQ(page.code, 0);
  EXPECT_THAT(page.out, testing::Not(HasSubstr("not done")));

  const Outcome mixed = test::runDeftc({"cache", "merge", first, merged});
  EXPECT_EQ(mixed.code, 2);
  EXPECT_THAT(mixed.err, HasSubstr("`" + merged + "` is no journal of tuning, but `" + first + "` is one"));
  EXPECT_EQ(test::runDeftc({"cache", "merge", merged, "--partial"}).code, 2);
}

TEST_F(TuneCommandTest, AShardThatCannotBeIsNamed) {
  const auto errorOf = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = small();
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = tune(arguments);
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(errorOf({"--shard", "2/2"}), HasSubstr("there is no shard 2/2"));
  EXPECT_THAT(errorOf({"--shard", "2"}), HasSubstr("`2` is no shard"));
  EXPECT_THAT(errorOf({"--shard", "0/2", "--config-file", folder.path("c.json")}),
              HasSubstr("--config-file"));
  // More shards than classes: the last ones have nothing to do.
  std::vector<std::string> arguments = small();
  arguments.insert(arguments.end(), {"--shard", "5/6", "--journal", journal});
  const Outcome idle = tune(arguments);
  EXPECT_EQ(idle.code, 0) << idle.err;
  EXPECT_THAT(idle.out, HasSubstr("shard 5/6: 0 of 1 class;"));
}

TEST_F(TuneCommandTest, EntriesAreJudgedOnTreesThatNobodyTunedOn) {
  // One of a family's, whose trees are known by its name.
  const std::vector<std::string> member{"--workload",   "few_shot:prompt=1000,branches=10,step=10",
                                        "--candidates", "2",
                                        "--axis",       "chunk_tokens=0,64"};
  ASSERT_EQ(tune(member).code, 0);
  const Outcome judged = test::runDeftc({"cache", "regret", DEFT_TEST_PACKAGE, "--backend", "cpu",
                                         "--threads", "1", "--held-out", "--trees-per-class", "2", "--json"});
  ASSERT_EQ(judged.code, 0) << judged.err;
  const auto report = nlohmann::json::parse(judged.out);
  ASSERT_EQ(report["rows"].size(), 2U);
  for (const auto &row : report["rows"]) {
    EXPECT_GT(row["us"], 0);
    EXPECT_EQ(row["offers"].back()["rule"], "heuristic");
    EXPECT_GT(row["offers"].back()["us"], 0);
    // It has a place of its own beside those of the trees that were tuned on.
    EXPECT_THAT(row["tuned_on"], testing::Not(testing::IsEmpty()));
    EXPECT_THAT(row["tuned_on"], testing::Not(testing::Contains(row["at"])));
    EXPECT_EQ(row["tuned_on"].front().size(), row["at"].size());
  }
  EXPECT_EQ(report["orders"][0]["rows"], 2);
  const Outcome others = test::runDeftc({"cache", "regret", DEFT_TEST_PACKAGE, "--backend", "cpu",
                                         "--threads", "1", "--workload", "speculative", "--json"});
  ASSERT_EQ(others.code, 0) << others.err;
  EXPECT_TRUE(nlohmann::json::parse(others.out)["rows"].empty()) << "trees of another family";
  // What is known of the class is confirmed, and nothing searched.
  auto again = member;
  again.insert(again.end(), {"--from-related", "--fresh"});
  const Outcome second = tune(again);
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("complete; "));
}

TEST_F(TuneCommandTest, StaleEntriesAreTimedAgainWithoutASearch) {
  ASSERT_EQ(tune({"--workload", "few_shot:prompt=1000,branches=10,step=10", "--candidates", "2", "--axis",
                  "chunk_tokens=0,64"})
                .code,
            0);
  const auto renew = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"cache",     "renew", DEFT_TEST_PACKAGE, "--backend", "cpu",
                                       "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::runDeftc(arguments);
  };
  EXPECT_THAT(renew({}).out, HasSubstr(" is stale\n"));

  std::string path;
  for (const auto &file : std::filesystem::directory_iterator(folder.path("cache/configs")))
    if (file.path().extension() == ".json")
      path = file.path().string();
  auto file = nlohmann::json::parse(module_cache::readText(path));
  ASSERT_EQ(file["entries"].size(), 1U);
  const std::string today = file["kernel_hashes"][0];
  file["entries"][0]["provenance"]["kernel_hash"] = "0123456789abcdef";
  module_cache::writeText(path, file.dump());
  const std::string before = module_cache::readText(path);

  const Outcome trial = renew({"--dry-run"});
  EXPECT_EQ(trial.code, 0) << trial.err;
  EXPECT_THAT(trial.out, HasSubstr("1 entry would be renewed in " + path));
  EXPECT_EQ(module_cache::readText(path), before);

  const Outcome renewed = renew({});
  EXPECT_EQ(renewed.code, 0) << renewed.err;
  EXPECT_THAT(renewed.out, HasSubstr("few-shot: "));
  EXPECT_THAT(renewed.out, HasSubstr(" when it was tuned)\n1 entry renewed in " + path));
  const auto after = nlohmann::json::parse(module_cache::readText(path));
  EXPECT_EQ(after["kernel_hashes"], nlohmann::json({today}));
  const auto &entry = after["entries"][0];
  EXPECT_EQ(entry["provenance"]["kernel_hash"], 0);
  EXPECT_THAT(entry["provenance"]["note"].get<std::string>(), HasSubstr("renewed"));
  EXPECT_GT(entry["measurement"]["tuned_us"], 0);
  EXPECT_THAT(renew({}).out, HasSubstr(" is stale\n"));
}

TEST_F(TuneCommandTest, WritesAReportAndRecordedSpaces) {
  auto arguments = small();
  arguments.erase(arguments.begin() + 2, arguments.begin() + 4);
  arguments.insert(arguments.end(), {"--strategy", "exhaustive", "--axis", "tile_q=16", "--axis",
                                     "prices=machine", "--axis", "partition=union,query", "--record",
                                     folder.path("spaces"), "--report", folder.path("r.html")});
  const Outcome outcome = tune(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(module_cache::namesIn(folder.path("spaces")).size(), 1U);
  EXPECT_THAT(module_cache::readText(folder.path("r.html")), HasSubstr("<svg"));
}

TEST_F(TuneCommandTest, WhatIsWrongIsSaidBeforeAnythingIsMeasured) {
  const auto error = [&](std::vector<std::string> arguments) {
    const Outcome outcome = tune(std::move(arguments));
    EXPECT_NE(outcome.code, 0);
    return outcome.err;
  };
  EXPECT_THAT(error({"--workload", "few_shots"}), HasSubstr("no workload `few_shots`"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--budget", "soon"}), HasSubstr("`soon` is no time"));
  for (const char *budget : {"", "inf", "1e300", "99999999999h", "-1s"})
    EXPECT_THAT(error({"--workload", "few_shot:step=1", "--budget", budget}), HasSubstr("is no time"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--note", "a\xff"}), HasSubstr("it is not UTF-8"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--threads", "100000"}),
              HasSubstr("is not a number of threads from 1 to 1024"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--axis", "chunks=1"}), HasSubstr("no axis `chunks`"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--axis", "chunk_tokens=-5"}),
              HasSubstr("chunk_tokens = -5 is not between 0 and"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--axis", "chunk_tokens"}),
              HasSubstr("is no axis with its values"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--record", folder.path("x")}),
              HasSubstr("add --strategy exhaustive"));
  module_cache::writeText(folder.path("file"), "");
  EXPECT_THAT(
      error({"--workload", "few_shot:step=1", "--strategy", "exhaustive", "--record", folder.path("file")}),
      HasSubstr("cannot make the folder `" + folder.path("file") + "`"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--axis", "tile_q=1"}),
              HasSubstr("nothing in the space can be used"));
  EXPECT_THAT(error({"--workload", "few_shot:step=1", "--journal", folder.path("one"), "--config-file",
                     folder.path("one")}),
              HasSubstr("would be written over"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("one")));
  EXPECT_THAT(error({}), HasSubstr("--workload"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("cache/configs")));
}

} // namespace
} // namespace deft::cli
