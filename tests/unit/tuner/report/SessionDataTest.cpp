#include "tuner/report/SessionData.h"

#include "tests/unit/tuner/report/Events.h"
#include "tests/unit/tuner/sparse/SomeReport.h"
#include "tuner/sparse/ReportJson.h"

#include <gtest/gtest.h>

namespace deft::report {
namespace {

using nlohmann::json;

SessionData session() {
  auto data = sessionOf(sessionEvents(), "a.jsonl");
  EXPECT_TRUE(data) << data.error().message;
  return data ? std::move(*data) : SessionData{};
}

TEST(SessionDataTest, TheHeadSaysWhatWasTuned) {
  const SessionData data = session();
  EXPECT_EQ(data.variant, "llama3_8b");
  EXPECT_EQ(data.device, "A GPU, sm_90a, 132 multiprocessors");
  EXPECT_EQ(data.spaceLegal, 880);
  ASSERT_EQ(data.broken.size(), 2u);
  EXPECT_EQ(data.broken[0].first, "shared memory"); // most first
  EXPECT_EQ(data.ended, "budget");
  EXPECT_EQ(data.made, 9);
}

TEST(SessionDataTest, AScoreCountsElseTheTimesBesideTheUntunedOnes) {
  const SessionData data = session();
  ASSERT_EQ(data.classes.size(), 2u);
  const ClassData &one = data.classes[0];
  ASSERT_EQ(one.candidates.size(), 4u);
  EXPECT_DOUBLE_EQ(one.find("aa")->ratio, 1);
  EXPECT_DOUBLE_EQ(one.find("bb")->ratio, 0.81);
  EXPECT_NEAR(one.find("cc")->ratio, std::sqrt(3.0 * 6.0), 1e-12); // 300 of 100, 1200 of 200
  EXPECT_TRUE(one.find("cc")->isDropped);
  EXPECT_EQ(one.find("dd")->ratio, 0);
  EXPECT_EQ(one.find("dd")->stage, "check");
  EXPECT_EQ(one.find("nobody"), nullptr);
}

TEST(SessionDataTest, EachTreeHasItsOwnUntunedConfig) {
  std::vector<json> events = sessionEvents();
  events[1]["trees"][0]["untuned"] = "aa";
  events[1]["trees"][1]["untuned"] = "bb";
  events.push_back(measured("bb", 1, 0, {400}));
  const auto data = sessionOf(events, "a.jsonl");
  ASSERT_TRUE(data) << data.error().message;
  const ClassData &one = data->classes[0];
  EXPECT_NEAR(one.find("aa")->ratio, std::sqrt(1 * 0.5), 1e-12); // 200 of 400 on the second tree
  EXPECT_NEAR(one.find("cc")->ratio, 3, 1e-12);                  // 300 of 100, 1200 of 400
}

TEST(SessionDataTest, RoundsOfTheFinalAreNotOfTheSearch) {
  EXPECT_EQ(session().classes[0].find("bb")->rounds, 1);
}

TEST(SessionDataTest, AFinishedClassHasItsResult) {
  const SessionData data = session();
  const ClassData &one = data.classes[0];
  EXPECT_TRUE(one.isDone());
  EXPECT_EQ(one.winnerId, "bb");
  EXPECT_EQ(one.gain, 1.25);
  EXPECT_EQ(one.heldOutGain, 1.2);
  EXPECT_EQ(one.untunedUs, 100);
  EXPECT_EQ(one.trees.size(), 2u);
  EXPECT_FALSE(data.classes[1].isDone());
}

TEST(SessionDataTest, ASessionThatWentOnIsOne) {
  std::vector<json> events = sessionEvents();
  const std::vector<json> again = {{{"event", "resumed"}, {"at", "2026-11-21T10:00:00Z"}},
                                   events[1],
                                   {{"event", "end"}, {"reason", "complete"}, {"made", 1}, {"reused", 9}}};
  events.insert(events.end(), again.begin(), again.end());
  const auto data = sessionOf(events, "a.jsonl");
  ASSERT_TRUE(data);
  EXPECT_EQ(data->resumed, 1);
  EXPECT_EQ(data->made, 10);
  EXPECT_EQ(data->ended, "complete");
  EXPECT_EQ(data->classes[0].trees.size(), 2u);
}

TEST(SessionDataTest, WrongShapesAreErrorsAndUnknownKindsAreNot) {
  EXPECT_TRUE(
      sessionOf({{{"event", "session"}}, {{"event", "weather"}, {"class", kClass}, {"id", "x"}}}, "a"));
  const auto noConfig = sessionOf({{{"event", "candidate"}, {"class", kClass}, {"id", "x"}}}, "a.jsonl");
  ASSERT_FALSE(noConfig);
  EXPECT_NE(noConfig.error().message.find("journal `a.jsonl`"), std::string::npos);
  EXPECT_FALSE(sessionOf({{{"event", "class"}, {"class", 7}}}, "a"));
  EXPECT_FALSE(sessionOf(
      {{{"event", "candidate"}, {"class", kClass}, {"id", "x"}, {"config", {{"partition", "no"}}}}}, "a"));
  EXPECT_FALSE(readSession("/nowhere.jsonl"));
}

TEST(SessionDataTest, ConfigsReadAsPeopleSayThem) {
  config::Config config;
  config.partition = spec::Partition::Union;
  config.chunkTokens = 256;
  config.phases = {{"wide", 16, config::Family::Sm90, 128, 64, 4, 12},
                   {"narrow", -1, config::Family::Sm80, 16, 64, 3, 4}};
  EXPECT_EQ(configText(config),
            "union, chunk 256, wide sm90 128x64, 4 stages, 12 warps, narrow sm80 16x64, 3 stages, 4 warps");
  for (config::PhaseConfig &phase : config.phases)
    phase.family = config::Family::Cpu;
  EXPECT_EQ(configText(config), "union, chunk 256, 128 rows");
}

TEST(SessionDataTest, OfSparseLayersTheLastTuningCounts) {
  EXPECT_FALSE(session().sparse);
  std::vector<json> events = sessionEvents();
  sparse::TuneReport report = sparse::someReport();
  events.push_back(sparse::sparseEvent(report));
  report.seconds = 7;
  events.push_back(sparse::sparseEvent(report));
  const auto data = sessionOf(events, "a.jsonl");
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_TRUE(data->sparse);
  EXPECT_EQ(data->sparse->seconds, 7);
  EXPECT_EQ(data->ended, "budget") << "the session's";
  events.back().erase("lists");
  const auto wrong = sessionOf(events, "a.jsonl");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("journal `a.jsonl`: ")) << wrong.error().message;
}

} // namespace
} // namespace deft::report
