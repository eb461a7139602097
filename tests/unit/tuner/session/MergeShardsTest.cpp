#include "tuner/session/MergeShards.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/Hash.h"
#include "tests/unit/tuner/session/TuneTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>

namespace deft::session {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

/// Shards of sessions over five classes, on a machine whose times are made up.
class MergeShardsTest : public TuneTest {
protected:
  MergeShardsTest() {
    input.samples = {{"few", 0, test::levelTree({1, 4}, {40, 9}), false},
                     {"flat", 0, test::levelTree({6}, {60}), false},
                     {"long", 0, test::levelTree({1, 4}, {160, 9}), false},
                     {"wide", 0, test::levelTree({1, 16}, {40, 9}), false},
                     {"deep", 0, test::levelTree({1, 2, 2, 2}, {30, 9, 9, 9}), false}};
    options.axes = {{"chunk_tokens", {"32", "64"}}, {"tile_q", {"16"}}, {"prices", {"machine"}}};
  }

  std::string pathOf(int index, int count) const {
    return folder.path("shard-" + std::to_string(index) + "-of-" + std::to_string(count) + ".jsonl");
  }
  TuneReport tuneShard(int index, int count) {
    options.shard = Shard{index, count};
    options.journal = pathOf(index, count);
    auto report = run();
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report ? std::move(*report) : TuneReport{};
  }
  std::vector<std::string> tuneShards(int count) {
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(tuneShard(i, count).ended, Ended::Complete);
      paths.push_back(pathOf(i, count));
    }
    return paths;
  }

  /// Class -> config and times.
  static std::map<std::string, std::string> choicesOf(const std::vector<ClassReport> &classes) {
    std::map<std::string, std::string> choices;
    for (const ClassReport &one : classes)
      choices[one.treeClass.text()] = !one.isDone ? "none"
                                                  : config::toJson(one.entry.config).dump() +
                                                        (one.entry.keepsDefault ? " untuned" : "") + " " +
                                                        std::to_string(one.entry.measurement.tunedUs);
    return choices;
  }
  /// Events that are `measured`, without their times.
  static std::vector<std::string> measurementsIn(const std::vector<std::string> &journals) {
    std::vector<std::string> all;
    for (const std::string &path : journals) {
      const auto events = readJournal(path);
      EXPECT_TRUE(events.ok()) << path;
      for (json event : *events)
        if (event["event"] == "measured") {
          event.erase("us");
          all.push_back(event.dump());
        }
    }
    return all;
  }
  static std::set<std::pair<std::string, std::string>>
  candidatesIn(const std::vector<std::string> &measurements) {
    std::set<std::pair<std::string, std::string>> all;
    for (const std::string &text : measurements) {
      const json event = json::parse(text);
      all.emplace(event["class"].get<std::string>(), event["id"].get<std::string>());
    }
    return all;
  }

  /// The journal with its events changed, under another name.
  std::string changed(const std::string &path, const std::function<void(json &event)> &change) const {
    std::string text;
    const auto events = readJournal(path);
    EXPECT_TRUE(events.ok());
    for (json event : *events) {
      change(event);
      if (!event.is_null())
        text += R"({"sum":")" + support::sha256Hex(event.dump()).substr(0, 8) + R"(","event":)" +
                event.dump() + "}\n";
    }
    const std::string to = path + ".changed";
    module_cache::writeText(to, text);
    return to;
  }
  static std::string faultOf(const std::vector<std::string> &paths) {
    const auto merged = mergeShards(paths);
    return merged ? "" : merged.error().message;
  }
};

TEST_F(MergeShardsTest, HoweverManyShardsTheChoicesAreThoseOfOneSession) {
  options.strategy = search::StrategyKind::Exhaustive;
  options.mostCandidates = 0;
  const auto whole = run();
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  ASSERT_EQ(whole->classes.size(), 5U);
  const auto expected = choicesOf(whole->classes);
  const auto ofOne = measurementsIn({options.journal});
  options.configPath.clear();
  for (const int count : {1, 2, 3, 7}) {
    const std::vector<std::string> paths = tuneShards(count);
    const auto merged = mergeShards(paths);
    ASSERT_TRUE(merged.ok()) << merged.error().message;
    EXPECT_EQ(choicesOf(merged->classes), expected) << count;
    EXPECT_EQ(merged->entries().size(), 5U);
    EXPECT_EQ(merged->shards, count);
    EXPECT_THAT(merged->warnings, testing::IsEmpty());
    // Each candidate of each class was measured by one shard, and none was left out.
    const auto measurements = measurementsIn(paths);
    EXPECT_EQ(std::set(measurements.begin(), measurements.end()).size(), measurements.size());
    EXPECT_EQ(candidatesIn(measurements), candidatesIn(ofOne));
    EXPECT_EQ(merged->measured, static_cast<int>(measurements.size()));
  }
}

TEST_F(MergeShardsTest, AGuidedSearchDoesNotDependOnTheNumberOfShards) {
  options.mostCandidates = 5;
  options.axes = {{"tile_q", {"16"}}, {"prices", {"machine"}}};
  const auto one = mergeShards(tuneShards(1));
  const auto five = mergeShards(tuneShards(5));
  ASSERT_TRUE(one.ok() && five.ok());
  EXPECT_EQ(choicesOf(one->classes), choicesOf(five->classes));
  const auto measured = measurementsIn({pathOf(0, 1)});
  auto dealt = measurementsIn({pathOf(0, 5), pathOf(1, 5), pathOf(2, 5), pathOf(3, 5), pathOf(4, 5)});
  EXPECT_THAT(dealt, testing::UnorderedElementsAreArray(measured));
}

TEST_F(MergeShardsTest, AShardWritesOnlyItsJournal) {
  const TuneReport report = tuneShard(1, 2);
  EXPECT_EQ(report.shard, (Shard{1, 2}));
  EXPECT_EQ(report.classes.size(), 2U);
  EXPECT_EQ(report.sessionClasses, 5);
  EXPECT_EQ(report.configPath, "");
  EXPECT_THAT(report.warnings, testing::IsEmpty());
  EXPECT_EQ(module_cache::namesIn(folder.path()), (std::vector<std::string>{"shard-1-of-2.jsonl"}));
}

TEST_F(MergeShardsTest, ACompleteShardIsNotMeasuredAgain) {
  EXPECT_GT(tuneShard(0, 3).made, 0);
  const std::string before = module_cache::readText(pathOf(0, 3));
  const TuneReport again = tuneShard(0, 3);
  EXPECT_EQ(again.made, 0);
  EXPECT_EQ(again.ended, Ended::Complete);
  EXPECT_TRUE(module_cache::readText(pathOf(0, 3)).starts_with(before));
  options.isFresh = true;
  EXPECT_GT(tuneShard(0, 3).made, 0);
}

TEST_F(MergeShardsTest, AKilledShardGoesOnAndMeasuresNothingTwice) {
  const std::vector<std::string> paths = tuneShards(2);
  const auto expected = mergeShards(paths);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  std::filesystem::remove(pathOf(0, 2));

  const auto isTuningThere = [&](const std::string &text) {
    return module_cache::readText(pathOf(0, 2)).find(text) != std::string::npos;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    behaviour.sleepSeconds = 0.005;
    tuneShard(0, 2);
    ::_exit(0);
  }
  while (!isTuningThere("\"done\"")) // the first of its three classes
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  EXPECT_EQ(faultOf(paths), "shard 0/2 (`" + paths[0] + "`) has not ended");
  const auto partly = mergeShards(paths, true);
  ASSERT_TRUE(partly.ok()) << partly.error().message;
  EXPECT_LT(partly->entries().size(), 5U);
  EXPECT_GE(partly->entries().size(), 3U);
  EXPECT_THAT(partly->warnings, Contains(HasSubstr("has not ended")));
  EXPECT_THAT(partly->warnings, Contains(HasSubstr("has no result")));

  const auto before = measurementsIn({paths[0]});
  const TuneReport report = tuneShard(0, 2);
  EXPECT_TRUE(report.isResumed);
  const auto after = measurementsIn({paths[0]});
  EXPECT_GT(after.size(), before.size());
  EXPECT_EQ(std::set(after.begin(), after.end()).size(), after.size());
  const auto merged = mergeShards(paths);
  ASSERT_TRUE(merged.ok()) << merged.error().message;
  EXPECT_EQ(choicesOf(merged->classes), choicesOf(expected->classes));
}

TEST_F(MergeShardsTest, WhatIsNoShardOfTheSessionIsNamed) {
  options.mostCandidates = 2;
  const std::vector<std::string> paths = tuneShards(2);
  ASSERT_EQ(faultOf({paths[1], paths[0]}), "") << "in any order";
  const std::string both = "`" + paths[0] + "` and `" + paths[1] + "` are ";

  const std::string device = changed(paths[1], [](json &event) {
    event["event"] == "session" ? void(event["device"]["name"] = "other") : void();
  });
  EXPECT_THAT(faultOf({paths[0], device}), HasSubstr("are of two devices: "));
  EXPECT_THAT(faultOf({paths[0], device}), HasSubstr("other"));
  const std::string release = changed(paths[1], [](json &event) {
    if (event["event"] == "session")
      event["deftc"] = "0.1.0";
  });
  EXPECT_THAT(faultOf({paths[0], release}), HasSubstr("` is of deftc 0.1.0, this is "));
  const std::string another = changed(paths[1], [](json &event) {
    if (event["event"] == "session") {
      event["identity"] = "0123";
      event["parts"]["seed"] = "1";
      event["parts"]["untuned"] = "2";
    }
  });
  EXPECT_THAT(faultOf({paths[0], another}),
              HasSubstr("are of two sessions, which differ in: seed, untuned config"));
  EXPECT_EQ(faultOf({paths[0], pathOf(0, 3)}),
            "cannot read `" + pathOf(0, 3) + "`: No such file or directory");
  tuneShard(0, 3);
  EXPECT_THAT(faultOf({paths[0], pathOf(0, 3)}), HasSubstr("are shards of 2 and of 3"));
  EXPECT_EQ(faultOf({paths[0], paths[0]}), "`" + paths[0] + "` and `" + paths[0] + "` are both shard 0/2");
  EXPECT_EQ(faultOf({paths[0]}), "there is no journal of shard 1/2");
  EXPECT_EQ(faultOf({pathOf(0, 3)}), "there is no journal of shard 1/3, 2/3");

  options.seed = 7;
  tuneShard(1, 4);
  EXPECT_THAT(faultOf({paths[0], pathOf(1, 4)}), HasSubstr("which differ in: seed"));
}

TEST_F(MergeShardsTest, EventsThatAShardCannotHaveAreNamed) {
  options.mostCandidates = 2;
  const std::vector<std::string> paths = tuneShards(2);
  const std::string head = "journal `" + paths[1] + ".changed`";
  const auto faultWith = [&](const std::function<void(json &)> &change) {
    return faultOf({paths[0], changed(paths[1], change)});
  };
  EXPECT_THAT(faultWith([](json &event) {
                if (event["event"] == "session")
                  event["shard"]["index"] = 0;
              }),
              HasSubstr(head + " of shard 0/2 has results of class "));
  EXPECT_EQ(faultWith([](json &event) {
              if (event["event"] == "session")
                event["shard"]["index"] = 5;
            }),
            head + ": there is no shard 5/2");
  EXPECT_EQ(faultWith([](json &event) {
              if (event["event"] == "session")
                event["shard"] = "1/2";
            }),
            head + ": a session has 1 to 100000 shards, not -1");
  EXPECT_EQ(faultWith([](json &event) {
              if (event["event"] == "end")
                event["reason"] = 3;
            }),
            head + " has events that deftc did not write");
  EXPECT_THAT(faultWith([](json &event) {
                if (event["event"] == "done")
                  event["entry"] = json();
              }),
              HasSubstr("the result of class "));
  EXPECT_THAT(faultWith([](json &event) {
                if (event["event"] == "end")
                  event["reason"] = "interrupted";
              }),
              HasSubstr("was interrupted"));
  EXPECT_THAT(faultOf({folder.path("none.jsonl")}), HasSubstr("none.jsonl"));
  EXPECT_EQ(faultOf({}), "there is no journal to merge");
}

TEST_F(MergeShardsTest, AConfigThatWasWrongInAnotherShardIsLeftOut) {
  const std::vector<std::string> paths = tuneShards(2);
  const auto merged = mergeShards(paths);
  ASSERT_TRUE(merged.ok()) << merged.error().message;
  const auto chosen = std::find_if(merged->classes.begin(), merged->classes.end(),
                                   [](const ClassReport &one) { return !one.entry.keepsDefault; });
  ASSERT_NE(chosen, merged->classes.end());
  const auto place = static_cast<std::size_t>(chosen - merged->classes.begin());
  const std::string id = space::configId(chosen->entry.config);
  // The shard that does not own the class finds the config wrong.
  const std::size_t other = Shard{0, 2}.owns(place) ? 1 : 0;
  const std::string name = merged->classes[other].treeClass.text();
  std::vector<std::string> doubtful = paths;
  doubtful[other] = changed(paths[other], [&](json &event) {
    if (event["event"] == "measured" && event["id"] == id)
      event = {{"event", "rejected"}, {"class", name}, {"id", id}, {"stage", "check"}, {"reason", "wrong"}};
    else if (event["event"] == "done" && event["winner"] == id)
      event = json();
  });
  const auto less = mergeShards(doubtful, true);
  ASSERT_TRUE(less.ok()) << less.error().message;
  EXPECT_FALSE(less->classes[place].isDone);
  EXPECT_THAT(less->warnings, Contains(HasSubstr("its config " + id + " gave a wrong result in shard " +
                                                 std::to_string(other) + "/2")));
}

TEST_F(MergeShardsTest, TheJournalOfAWholeSessionIsItsOnlyShard) {
  options.mostCandidates = 2;
  const auto whole = run();
  ASSERT_TRUE(whole.ok());
  const auto merged = mergeShards({options.journal});
  ASSERT_TRUE(merged.ok()) << merged.error().message;
  EXPECT_EQ(merged->shards, 1);
  EXPECT_EQ(choicesOf(merged->classes), choicesOf(whole->classes));
  EXPECT_TRUE(saysJournal(options.journal));
  EXPECT_FALSE(saysJournal(options.configPath));
  EXPECT_FALSE(saysJournal(folder.path("none")));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(saysJournal(folder.path("pipe"))) << "and its writer, who never comes, is not waited for";
}

TEST_F(MergeShardsTest, AJournalOfAnotherShardIsNotGoneOnWith) {
  options.mostCandidates = 2;
  int left = 60;
  isCancelled = [&left] { return --left < 0; };
  options.journal = folder.path("one.jsonl");
  options.shard = Shard{0, 2};
  ASSERT_TRUE(run().ok());
  options.shard = Shard{1, 2};
  const auto other = run();
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message,
            "journal `" + options.journal + "` is that of shard 0/2, not of shard 1/2");
  options.shard.reset();
  const auto whole = run();
  ASSERT_FALSE(whole.ok());
  EXPECT_THAT(whole.error().message, HasSubstr("is that of shard 0/2, not of a whole session"));
  options.shard = Shard{2, 2};
  EXPECT_EQ(run().error().message, "there is no shard 2/2");
}

} // namespace
} // namespace deft::session
