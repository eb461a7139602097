#include "tests/unit/tuner/session/TuneTesting.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "tuner/session/DoneEvent.h"
#include "tuner/session/Recording.h"
#include "tuner/workload/Similar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sys/resource.h>

namespace deft::session {
namespace {

using nlohmann::json;
using test::landscape;
namespace fs = std::filesystem;

TEST_F(TuneTest, FindsTheFastestOfEachClassAndKeepsIt) {
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->ended, Ended::Complete);
  ASSERT_EQ(report->classes.size(), 2U);
  for (const ClassReport &one : report->classes) {
    EXPECT_TRUE(one.isDone);
    EXPECT_TRUE(one.entry.isComplete);
    EXPECT_FALSE(one.entry.keepsDefault) << one.note;
    EXPECT_EQ(one.entry.config.partition, spec::Partition::Query);
    EXPECT_EQ(one.entry.config.chunkTokens, 64);
    EXPECT_GT(one.gain, 1.5);
    EXPECT_NEAR(one.entry.measurement.gain(), one.gain, 0.01);
  }
  EXPECT_TRUE(report->classes[0].heldOutGain || report->classes[1].heldOutGain);
  const auto kept = config_cache::readConfigFile(options.configPath);
  ASSERT_EQ(kept.state, config_cache::FileState::Good) << kept.message;
  ASSERT_EQ(kept.file.entries.size(), 2U);
  EXPECT_EQ(kept.file.entries[0].measurement.trees + kept.file.entries[1].measurement.trees, 3);
  EXPECT_FALSE(statuses.empty());
  EXPECT_THAT(notes, testing::Contains(testing::StartsWith("space: ")));
}

TEST_F(TuneTest, WhereNothingIsClearlyFasterTheUntunedStays) {
  behaviour.time = [](const plan::Plan &) { return 100.0; };
  behaviour.noise = 0.01;
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const ClassReport &one : report->classes) {
    EXPECT_TRUE(one.entry.keepsDefault);
    EXPECT_EQ(config::toJson(one.entry.config), config::toJson(*program::cpuConfig(input.variant, 1)));
    EXPECT_FALSE(one.note.empty());
    EXPECT_EQ(one.gain, 1);
  }
}

TEST_F(TuneTest, NoiseDoesNotHideAClearWinner) {
  behaviour.noise = 0.05;
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const ClassReport &one : report->classes)
    EXPECT_EQ(one.entry.config.partition, spec::Partition::Query) << one.note;
}

TEST_F(TuneTest, WhereNothingIsFasterTheMeasurementIsOfAllTrees) {
  behaviour.time = [](const plan::Plan &) { return 100; };
  options.isFresh = true;
  int kept = 0;
  for (int session = 0; session < 8; ++session) {
    behaviour.noise = 0.05 + 0.01 * session;
    const auto report = run();
    ASSERT_TRUE(report.ok()) << report.error().message;
    for (const ClassReport &one : report->classes)
      if (one.entry.keepsDefault) {
        EXPECT_EQ(one.entry.measurement.trees, one.trees) << one.note;
        EXPECT_EQ(one.entry.measurement.tunedUs, one.entry.measurement.untunedUs);
        ++kept;
      }
  }
  EXPECT_GT(kept, 8);
}

TEST_F(TuneTest, AClassWithFewTreesIsJudgedByTreesLikeThem) {
  options.addsSimilar = true;
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  int all = 0;
  for (const ClassReport &one : report->classes) {
    EXPECT_EQ(one.trees, 2);
    EXPECT_GE(one.heldOut, 4); // of six that are wanted some are of another class
    all += one.trees + one.heldOut;
    EXPECT_TRUE(one.heldOutGain);
  }
  int similar = 0, far = 0;
  for (const json &event : events("class"))
    for (const json &tree : event["trees"]) {
      similar += tree.contains("similar");
      const bool isFar = tree.value("similar", std::uint64_t{0}) >= workload::kFarSeeds;
      EXPECT_FALSE(isFar && !tree["held_out"]);
      far += isFar;
    }
  EXPECT_EQ(similar, all - static_cast<int>(input.samples.size()));
  EXPECT_GE(far, 2);
}

TEST_F(TuneTest, CandidatesThatFaultHangOrAreWrongAreLeftOutAndNotTriedAgain) {
  // The fastest ones are broken, each in its way; `flatten` is the fastest that works.
  behaviour.time = [](const plan::Plan &plan) {
    return plan.partition == spec::Partition::Flatten ? 80.0 : landscape(plan);
  };
  const std::string tries = folder.path("tries");
  behaviour.run = [tries](const plan::Plan &plan) {
    if (plan.partition != spec::Partition::Query)
      return true;
    std::ofstream(tries, std::ios::app) << plan.chunkTokens << '\n';
    if (plan.chunkTokens == 64)
      ::raise(SIGSEGV);
    if (plan.chunkTokens == 32)
      std::this_thread::sleep_for(std::chrono::hours(1));
    return false; // a wrong result
  };
  options.timeSeconds = 1;
  options.axes[0].values = {"32", "64", "128"};
  options.axes.push_back({"partition", {"union", "query", "flatten"}});
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const ClassReport &one : report->classes)
    EXPECT_EQ(one.entry.config.partition, spec::Partition::Flatten) << one.note;
  EXPECT_GE(report->restarts, 2);
  std::map<std::string, std::string> reasons;
  for (const json &event : events("rejected"))
    EXPECT_TRUE(reasons.emplace(event["id"], event["reason"]).second) << "rejected twice: " << event.dump();
  ASSERT_EQ(reasons.size(), 3U);
  std::multiset<std::string> kinds;
  for (const auto &[id, reason] : reasons)
    kinds.insert(reason.substr(0, reason.find(' ')));
  EXPECT_EQ(kinds, (std::multiset<std::string>{"no", "the", "wrong"})); // answer within, child died, result
  std::ifstream file(tries);
  std::multiset<int> chunks;
  for (int chunk; file >> chunk;)
    chunks.insert(chunk);
  EXPECT_EQ(chunks, (std::multiset<int>{32, 64, 128}));
}

TEST_F(TuneTest, ACompleteSessionIsNotMeasuredTwiceAndAFreshOneIs) {
  ASSERT_TRUE(run().ok());
  const auto size = fs::file_size(options.journal);
  const auto again = run(); // a complete journal is put aside
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->isResumed);
  EXPECT_GT(again->made, 0);
  EXPECT_EQ(again->reused, 0);
  int journals = 0;
  for (const auto &entry : fs::directory_iterator(folder.path()))
    journals += entry.path().filename().string().starts_with("journal-") && fs::file_size(entry) == size;
  EXPECT_EQ(journals, 1);
}

TEST_F(TuneTest, AnInterruptedSessionGoesOnWhereItWas) {
  int asked = 0;
  isCancelled = [&] { return ++asked > 60; }; // in the midst of the first class
  const auto first = run();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->ended, Ended::Interrupted);
  EXPECT_GT(first->made, 0);
  isCancelled = {};
  const auto second = run();
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->isResumed);
  EXPECT_EQ(second->ended, Ended::Complete);
  EXPECT_EQ(second->reused, first->made);
  std::set<std::string> seen;
  for (json event : events("measured")) {
    event.erase("us");
    EXPECT_TRUE(seen.insert(event.dump()).second) << event.dump();
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(first->made + second->made));
}

TEST_F(TuneTest, ASessionWithOtherParametersIsAnotherOne) {
  const auto identityWith = [&](float value) {
    input.params = {{{value}, {}}};
    EXPECT_TRUE(run().ok());
    return events("session").front()["identity"];
  };
  const json one = identityWith(1.5f);
  EXPECT_EQ(identityWith(1.5f), one);
  EXPECT_NE(identityWith(2.5f), one);
}

TEST_F(TuneTest, ABudgetIsKept) {
  behaviour.sleepSeconds = 0.01;
  options.budgetSeconds = 1.5;
  const auto begin = std::chrono::steady_clock::now();
  const auto report = run();
  ASSERT_TRUE(report.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(report->ended, Ended::Budget);
}

TEST_F(TuneTest, WhereTheTimeIsShortAClassIsConfirmedAtOnce) {
  input.samples.resize(1);
  // All candidates are as fast, so that there would be several finalists.
  options.axes.push_back({"partition", {"query"}});
  behaviour.time = [](const plan::Plan &plan) {
    return plan.partition == spec::Partition::Query ? 100.0 : 200.0;
  };
  behaviour.sleepSeconds = 0.15; // the first rounds of a race take longer than the search's share
  options.budgetSeconds = 1.5;
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->classes.size(), 1U);
  EXPECT_TRUE(report->classes[0].isDone);
  // What too little time came to is kept as such, and the journal says the same when it is gone on with.
  EXPECT_FALSE(report->classes[0].entry.isComplete);
  const auto kept = config_cache::readConfigFile(options.configPath);
  ASSERT_EQ(kept.file.entries.size(), 1U);
  EXPECT_FALSE(kept.file.entries[0].isComplete);
  json older = events("done").front();
  older["entry"].erase("complete");
  EXPECT_FALSE(reportOfDone(older, config::DeviceKind::Cpu)->entry.isComplete);
  int final = 0, confirmation = 0;
  for (const json &event : events("measured")) {
    final += event["round"] >= 1'000'000 && event["round"] < 2'000'000;
    confirmation += event["round"] >= 2'000'000;
  }
  EXPECT_EQ(final, 0);
  EXPECT_GE(confirmation, 10); // five rounds of two, on the one tree
}

TEST_F(TuneTest, APlaceForConfigsThatCannotBeIsSaidBeforeAnythingIsMeasured) {
  std::ofstream(folder.path("file")) << "in the way";
  options.configPath = folder.path("file/configs.json");
  EXPECT_FALSE(run().ok());
  EXPECT_FALSE(std::filesystem::exists(options.journal)) << "nor is a journal begun, or put aside";
}

TEST_F(TuneTest, ConfigsThatCannotBeSavedStayInTheJournalAndTheSameSessionSavesThem) {
  behaviour.run = [this](const plan::Plan &) { // while it is measured, a folder takes the file's place
    std::filesystem::create_directory(options.configPath);
    return true;
  };
  const auto first = run();
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_TRUE(first->notSaved);
  EXPECT_THAT(first->notSaved->hint, testing::HasSubstr("the same session again saves them"));
  EXPECT_EQ(events("done").size(), 2U);
  std::filesystem::remove(options.configPath);
  const auto second = run();
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_FALSE(second->notSaved);
  EXPECT_EQ(second->made, 0);
  EXPECT_EQ(config_cache::readConfigFile(options.configPath).file.entries.size(), 2U);
}

/// No file gets longer than so many bytes, as if the disk were full.
class DiskOf {
public:
  explicit DiskOf(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~DiskOf() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(TuneTest, OnAFullDiskNobodySaysThatTheJournalHasTheResults) {
  ASSERT_TRUE(run().ok());
  std::ifstream journal(options.journal);
  std::string session;
  std::getline(journal, session);
  std::filesystem::remove(options.journal);
  std::filesystem::remove(options.configPath);
  std::optional<support::Result<TuneReport>> report;
  {
    const DiskOf little(session.size() + 100);
    report.emplace(run());
  }
  ASSERT_TRUE(report->ok()) << report->error().message;
  ASSERT_TRUE((*report)->notSaved);
  EXPECT_THAT((*report)->notSaved->hint, testing::HasSubstr("the journal could not be written either"));
  EXPECT_THAT((*report)->warnings, testing::Contains(testing::HasSubstr(options.journal)));
}

TEST_F(TuneTest, AProcessThatSomebodyKillsOnceCondemnsNobody) {
  behaviour.run = [this](const plan::Plan &) {
    if (std::filesystem::create_directory(folder.path("was_killed")))
      ::raise(SIGKILL);
    return true;
  };
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->restarts, 1);
  EXPECT_TRUE(events("rejected").empty());
  for (const ClassReport &one : report->classes)
    EXPECT_TRUE(one.isDone);
}

TEST_F(TuneTest, WhatCouldNotBeSavedIsSavedWithTheNextClass) {
  const std::string folderInTheWay = options.configPath;
  behaviour.run = [&](const plan::Plan &plan) { // the first class's trees have fewer tokens
    if (plan.readTokens < 100)
      std::filesystem::create_directory(folderInTheWay);
    else
      std::filesystem::remove(folderInTheWay);
    return true;
  };
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->notSaved);
  EXPECT_EQ(config_cache::readConfigFile(options.configPath).file.entries.size(), 2U);
}

TEST_F(TuneTest, AnEntryOfAnotherScheduleStaysUnlessItIsSlower) {
  ASSERT_TRUE(run().ok());
  const auto before = config_cache::readConfigFile(options.configPath).file.entries;
  spec::ScheduleSpec schedule;
  schedule.partitions = {spec::Partition::Node};
  input.variant.schedule = schedule;
  options.journal = folder.path("other.jsonl");
  ASSERT_TRUE(run().ok());
  const auto after = config_cache::readConfigFile(options.configPath).file.entries;
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(config_cache::toJson(after[i]), config_cache::toJson(before[i]));

  auto slow = before;
  for (config_cache::Entry &entry : slow)
    entry.measurement.tunedUs = entry.measurement.untunedUs = 1e6;
  const config_cache::DeviceKey device = config_cache::readConfigFile(options.configPath).file.device;
  ASSERT_TRUE(config_cache::mergeWrite(options.configPath, config_cache::Owner::User, device, slow));
  behaviour.time = [](const plan::Plan &plan) { return plan.chunkTokens == 16 ? 50 : 100; };
  options.isFresh = true;
  ASSERT_TRUE(run().ok());
  const auto third = config_cache::readConfigFile(options.configPath).file.entries;
  EXPECT_TRUE(std::any_of(third.begin(), third.end(), [](const config_cache::Entry &entry) {
    return entry.config.partition == spec::Partition::Node && !entry.keepsDefault;
  }));
}

TEST_F(TuneTest, AMachineThatCannotBeOpenedIsAnError) {
  input.backend = test::fakeBackend(input.variant, behaviour);
  input.backend.open = []() -> support::Result<std::unique_ptr<measure::Machine>> {
    return support::Error{support::ErrorCode::Environment, "no driver", "install one"};
  };
  const auto report = tune(input, options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message, "no driver");
}

TEST_F(TuneTest, AnUntunedConfigThatFailsIsSaidAndKeepsNothing) {
  behaviour.run = [](const plan::Plan &) -> bool {
    ::raise(SIGABRT);
    return true;
  };
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const ClassReport &one : report->classes)
    EXPECT_FALSE(one.isDone);
  EXPECT_THAT(report->warnings,
              testing::Contains(testing::HasSubstr("the untuned config cannot be measured")));
  EXPECT_FALSE(fs::exists(options.configPath));
}

TEST_F(TuneTest, AnExhaustiveSearchRecordsEveryPoint) {
  options.strategy = search::StrategyKind::Exhaustive;
  options.mostCandidates = 0;
  options.recordFolder = folder.path("spaces");
  ASSERT_TRUE(run().ok());
  int files = 0;
  for (const auto &entry : fs::directory_iterator(options.recordFolder)) {
    const auto recording = readRecording(entry.path().string());
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    ++files;
    const std::vector<space::Point> points = recording->space.points();
    std::size_t best = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      ASSERT_GT(recording->ratios[i], 0) << i;
      if (recording->ratios[i] < recording->ratios[best])
        best = i;
    }
    const config::Config config = recording->space.configOf(points[best]);
    EXPECT_EQ(config.partition, spec::Partition::Query);
    EXPECT_EQ(config.chunkTokens, 64);
    EXPECT_EQ(toJson(*recordingFromJson(toJson(*recording))), toJson(*recording));
  }
  EXPECT_EQ(files, 2);
}

} // namespace
} // namespace deft::session
