#include "tuner/session/CandidateTimer.h"

#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"
#include "tests/unit/tuner/session/StepTesting.h"
#include "tuner/space/MakeSpace.h"

#include <gmock/gmock.h>

namespace deft::session {
namespace {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;
using test::configOf;

constexpr int kWrong = 13, kHanging = 14; ///< chunks of candidates that are so

/// A device on which a candidate takes as many microseconds as its chunk has tokens, a little more run by
/// run.
class ChunkService : public measure::Service {
public:
  Result<measure::Message> handle(const measure::Message &request) override {
    const std::string op = request.head.at("op");
    if (op == "prepare")
      chunks_[request.head.at("id")] = request.head.at("config").at("chunk_tokens");
    json answer = json::object();
    if (op == "check")
      answer = {{"right", chunks_.at(request.head.at("id")) != kWrong}, {"why", "it is not"}};
    if (op == "time") {
      const int chunk = chunks_.at(request.head.at("id"));
      if (chunk == kHanging)
        return Error{ErrorCode::Diagnostics, "no time", ""};
      for (int i = 0; i < request.head.at("repeats").get<int>(); ++i)
        answer["us"].push_back(chunk + 1000 * request.head.at("tree").get<int>() + i);
    }
    return measure::Message{answer, {}};
  }

private:
  std::map<std::string, int> chunks_;
};

class CandidateTimerTest : public testing::Test {
protected:
  CandidateTimerTest() {
    for (const Sample &sample : samples_)
      trees_.samples.push_back(&sample);
    trees_.searched = 2;
    listener_.note = [this](const std::string &line) { notes_.push_back(line); };
    listener_.isCancelled = [this] { return isCancelled_; };
    // What a session enters before it measures.
    for (const config::Config &config : task_.untuned.configs())
      candidates_.enter({config, std::nullopt, kUntunedOrigin});
  }
  std::string enter(int chunk) { return candidates_.enter({configOf(chunk), std::nullopt, "guided"}); }
  std::size_t count(const std::string &kind) const { return test::eventsOf(journal_, kind).size(); }

  module_cache::TestFolder folder_;
  std::vector<Sample> samples_{{"one", 0, test::levelTree({1, 4}, {40, 9}), false},
                               {"two", 0, test::levelTree({1, 4}, {42, 9}), false}};
  TreesOfClass trees_;
  TuneInput input_;
  TuneOptions options_;
  Listener listener_;
  std::vector<std::string> notes_;
  bool isCancelled_ = false;
  TunedDevice device_{{config_cache::DeviceKey::Kind::Cpu, "x86-64-v4", 512, 1, "fake"}, ""};
  space::Space space_ = *space::makeSpace(test::ScalarKernel<4, 2, 16>::variant(), {});
  ChildProcesses processes_{[]() -> Result<std::unique_ptr<measure::Service>> {
                              return std::unique_ptr<measure::Service>(std::make_unique<ChunkService>());
                            },
                            {},
                            {}};
  Journal journal_ =
      *Journal::open(folder_.path("journal"),
                     {{"event", "session"}, {"version", kJournalVersion}, {"identity", "x"}}, false);
  SessionContext context_{input_, options_, listener_, device_, space_, processes_, journal_};
  ClassTask task_{trees_, 0, 1, UntunedChoices({configOf(16), configOf(32)}, 2), {}, {}, {}};
  Candidates candidates_;
  ClassClock clock_{ClassClock::Clock::now(), std::nullopt, std::nullopt};
  CandidateTimer timer_{context_, task_, candidates_, clock_};
};

TEST_F(CandidateTimerTest, ACandidateIsCheckedOnceAndMeasuredOnceForEachTreeAndRound) {
  const std::string id = enter(64);
  EXPECT_EQ(timer_.measure(id, 0, 0), 64) << "the fastest run";
  EXPECT_EQ(timer_.measure(id, 1, 0), 1064);
  EXPECT_EQ(timer_.measure(id, 0, 1), 64);
  EXPECT_EQ(timer_.measure(id, 0, 1), 64);
  EXPECT_EQ(timer_.made(), 3);
  EXPECT_EQ(timer_.reused(), 0) << "what this run measured itself is not reused";
  EXPECT_EQ(count("checked"), 1U);
  EXPECT_EQ(count("measured"), 3U);
  EXPECT_GT(timer_.openSeconds(), 0);
}

TEST_F(CandidateTimerTest, OnAGpuTheMedianRunCounts) {
  device_.key.kind = config_cache::DeviceKey::Kind::Gpu;
  EXPECT_EQ(timer_.measure(enter(64), 0, 0), 67) << "of seven";
}

TEST_F(CandidateTimerTest, WhatTheJournalHasNeedsNoDevice) {
  const std::string id = enter(64);
  journal_.write({{"event", "measured"},
                  {"class", task_.name()},
                  {"id", id},
                  {"tree", 0},
                  {"round", 4},
                  {"us", {9.0, 7.0, 8.0}}});
  EXPECT_EQ(timer_.measure(id, 0, 4), 7);
  EXPECT_EQ(timer_.reused(), 1);
  EXPECT_EQ(timer_.made(), 0);
  EXPECT_EQ(timer_.openSeconds(), 0);
}

TEST_F(CandidateTimerTest, TheUntunedRacerIsOnEachTreeWhatThatGets) {
  EXPECT_EQ(timer_.measure(kUntuned, 0, 0), 16);
  EXPECT_EQ(timer_.measure(kUntuned, 1, 0), 1032);
}

TEST_F(CandidateTimerTest, AFaultIsSaidOnceAndTheCandidateNotTriedAgain) {
  const std::string wrong = enter(kWrong), hanging = enter(kHanging);
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(timer_.measure(wrong, 0, round));
    EXPECT_FALSE(timer_.measure(hanging, 0, round));
  }
  EXPECT_EQ(timer_.rejected(), 2);
  EXPECT_EQ(count("rejected"), 2U);
  EXPECT_EQ(count("checked"), 1U);
  EXPECT_THAT(notes_,
              testing::ElementsAre("candidate " + wrong + " is left out: check: wrong result: it is not",
                                   "candidate " + hanging + " is left out: time: no time"));
}

TEST_F(CandidateTimerTest, WhoStopsTheSessionCondemnsNobody) {
  isCancelled_ = true;
  EXPECT_FALSE(timer_.measure(enter(kWrong), 0, 0));
  EXPECT_EQ(timer_.rejected(), 0);
  EXPECT_EQ(count("rejected"), 0U);
}

TEST_F(CandidateTimerTest, WhatWasForgottenIsPreparedAnewButNotCheckedAnew) {
  const std::string id = enter(64);
  EXPECT_TRUE(timer_.measure(id, 0, 0));
  timer_.forgetAllBut(task_.untuned.ids());
  EXPECT_EQ(timer_.measure(id, 0, 1), 64);
  EXPECT_EQ(count("checked"), 1U);
}

} // namespace
} // namespace deft::session
