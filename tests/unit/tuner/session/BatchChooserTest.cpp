#include "tuner/session/BatchChooser.h"

#include "compiler/config/ConfigJson.h"
#include "tests/support/ScalarKernel.h"
#include "tests/unit/tuner/session/StepTesting.h"
#include "tuner/space/MakeSpace.h"

#include <gmock/gmock.h>

#include <unistd.h>

namespace deft::session {
namespace {

using nlohmann::json;
using test::configOf;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kClass[] = "c1-t6-q2-s1-d1-f0";

space::Space smallSpace() {
  auto space = space::makeSpace(test::ScalarKernel<4, 2, 16>::variant(), {},
                                {{"partition", {"query", "node"}},
                                 {"chunk_tokens", {"16", "32", "64"}},
                                 {"tile_q", {"16"}},
                                 {"prices", {"machine"}}});
  EXPECT_TRUE(space.ok()) << space.error().message;
  return *space;
}

struct NoPredictor : search::Predictor {
  std::optional<double> microseconds(const space::Point &) override { return 12.5; }
};

/// Proposes all points in turn, and remembers what it was told.
struct PlainStrategy : search::Strategy {
  explicit PlainStrategy(const space::Space &space) : points(space.points()) {}

  std::vector<space::Point> propose(int count) override {
    std::vector<space::Point> chosen;
    for (; count > 0 && next < points.size(); --count)
      chosen.push_back(points[next++]);
    return chosen;
  }
  void tell(const space::Point &point, std::optional<double> microseconds) override {
    told.emplace_back(point, microseconds);
  }

  std::vector<space::Point> points;
  std::size_t next = 0;
  std::vector<std::pair<space::Point, std::optional<double>>> told;
};

class BatchChooserTest : public testing::Test {
protected:
  BatchChooser chooser(const Related &related = {}) {
    return {{space_, untuned_, candidates_, strategy_, predictor_, compilers_, journal_, kClass, "plain",
             config::DeviceKind::Cpu},
            related};
  }
  std::vector<std::string> next(BatchChooser &chooser, int round, std::size_t most) {
    return chooser.next(round, most, [] { return false; });
  }
  std::string idOf(std::size_t point) const {
    return space::configId(space_.configOf(strategy_.points[point]));
  }
  std::vector<json> events(const std::string &kind) const { return test::eventsOf(journal_, kind); }

  module_cache::TestFolder folder_;
  space::Space space_ = smallSpace();
  NoPredictor predictor_;
  PlainStrategy strategy_{space_};
  CompilePool compilers_{{}, 0, 1};
  Journal journal_ =
      *Journal::open(folder_.path("journal"),
                     {{"event", "session"}, {"version", kJournalVersion}, {"identity", "x"}}, false);
  Candidates candidates_;
  UntunedChoices untuned_{{space_.configOf(strategy_.points[2])}, 1};
};

TEST_F(BatchChooserTest, TheStrategysComeOnceEachButForTheUntunedOne) {
  BatchChooser chooser = this->chooser();
  chooser.begin();
  EXPECT_THAT(next(chooser, 0, 3), ElementsAre(idOf(0), idOf(1), idOf(3)));
  EXPECT_THAT(next(chooser, 5, 3), ElementsAre(idOf(4), idOf(5)));
  EXPECT_THAT(next(chooser, 10, 3), IsEmpty());
  const auto batches = events("batch");
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[1]["round"], 5);
  EXPECT_EQ(batches[1]["ids"], (json{idOf(4), idOf(5)}));
  const auto told = events("candidate");
  ASSERT_EQ(told.size(), 6U);
  EXPECT_EQ(told[0]["origin"], "default");
  EXPECT_EQ(told[1]["origin"], "plain");
  EXPECT_EQ(told[1]["predicted_us"], 12.5);
}

TEST_F(BatchChooserTest, AStrategyHearsThatTheUntunedChoiceOfAllTreesTakesAsLongAsItself) {
  chooser().begin();
  ASSERT_EQ(strategy_.told.size(), 1U);
  EXPECT_EQ(strategy_.told[0].first, strategy_.points[2]);
  EXPECT_EQ(strategy_.told[0].second, 1.0);
}

TEST_F(BatchChooserTest, WhatIsRelatedComesFirstAndWhatIsKnownAlone) {
  Related related;
  related.ofClass = {configOf(5)}; // outside of the space
  related.neighbours = {space_.configOf(strategy_.points[4])};
  BatchChooser searching = chooser(related);
  searching.begin();
  const std::string own = space::configId(configOf(5));
  EXPECT_THAT(next(searching, 0, 3), ElementsAre(own, idOf(4), idOf(0)));
  EXPECT_EQ(candidates_.at(own).origin, kRelatedOrigin);
  EXPECT_FALSE(candidates_.at(own).point);
  EXPECT_TRUE(candidates_.at(idOf(4)).isOfNeighbour());

  related.isKnown = true;
  BatchChooser confirming = chooser(related);
  confirming.begin();
  EXPECT_THAT(next(confirming, 5, 3), ElementsAre(own, idOf(4)));
  EXPECT_THAT(next(confirming, 10, 3), IsEmpty());
}

TEST_F(BatchChooserTest, AResumedSessionRacesWhatWasRaced) {
  const config::Config elsewhere = configOf(7);
  const std::string id = space::configId(elsewhere);
  journal_.write({{"event", "candidate"},
                  {"class", kClass},
                  {"id", id},
                  {"config", config::toJson(elsewhere)},
                  {"origin", "neighbour"}});
  journal_.write({{"event", "batch"}, {"class", kClass}, {"round", 0}, {"ids", {id, idOf(1)}}});
  journal_.write({{"event", "candidate"},
                  {"class", kClass},
                  {"id", idOf(1)},
                  {"config", config::toJson(space_.configOf(strategy_.points[1]))},
                  {"origin", "plain"}});
  BatchChooser chooser = this->chooser();
  chooser.begin();
  EXPECT_THAT(next(chooser, 0, 1), ElementsAre(id, idOf(1)));
  EXPECT_TRUE(candidates_.at(id).isOfNeighbour());
  EXPECT_THAT(next(chooser, 5, 2), ElementsAre(idOf(0), idOf(3))) << "the second is not raced twice";
}

TEST_F(BatchChooserTest, WhatWasRejectedIsPassedOverAndTheStrategyIsTold) {
  journal_.write(
      {{"event", "rejected"}, {"class", kClass}, {"id", idOf(0)}, {"stage", "check"}, {"reason", "wrong"}});
  BatchChooser chooser = this->chooser();
  chooser.begin();
  EXPECT_THAT(next(chooser, 0, 2), ElementsAre(idOf(1), idOf(3)));
  ASSERT_EQ(strategy_.told.size(), 2U);
  EXPECT_EQ(strategy_.told[1].first, strategy_.points[0]);
  EXPECT_FALSE(strategy_.told[1].second);
}

/// A compiler that never ends.
struct SlowCompiler : measure::Service {
  support::Result<measure::Message> handle(const measure::Message &) override {
    for (;;)
      ::pause();
  }
};

TEST_F(BatchChooserTest, WhoWaitsForACompilerAsksWhetherToGoOn) {
  CompilePool slow(
      []() -> support::Result<std::unique_ptr<measure::Service>> {
        return std::unique_ptr<measure::Service>(std::make_unique<SlowCompiler>());
      },
      1, 60);
  BatchChooser chooser({space_, untuned_, candidates_, strategy_, predictor_, slow, journal_, kClass, "plain",
                        config::DeviceKind::Cpu},
                       {});
  chooser.begin();
  int asked = 0;
  EXPECT_THAT(chooser.next(0, 3, [&] { return ++asked == 2; }), IsEmpty());
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(events("batch").empty());
}

} // namespace
} // namespace deft::session
