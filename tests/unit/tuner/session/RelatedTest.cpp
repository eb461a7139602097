#include "tests/unit/tuner/session/TuneTesting.h"

#include "compiler/config/ConfigJson.h"

#include <gmock/gmock.h>

#include <fstream>

namespace deft::session {
namespace {

using nlohmann::json;
using test::landscape;

/// A session that may use what `edit` has made of the entries of one before.
class RelatedTest : public TuneTest {
protected:
  TuneReport runAfter(const std::function<void(json &entries)> &edit) {
    options.places.userFolder = folder.path("configs");
    options.configPath.clear();
    const auto first = run();
    EXPECT_TRUE(first.ok()) << first.error().message;
    std::ifstream in(first->configPath);
    json file = json::parse(in);
    edit(file["entries"]);
    std::ofstream(first->configPath) << file.dump(1);
    full = *first;
    options.journal = folder.path("second.jsonl");
    options.fromRelated = true;
    auto second = run();
    EXPECT_TRUE(second.ok()) << second.error().message;
    return std::move(*second);
  }

  /// What is taken where `flatten` is the best, and with tokens in turn, which is known for the other type,
  /// faster by so much.
  std::string orderTaken(double gain) {
    constexpr int kLeaves = 12;
    input.samples = {{"few", 0, test::levelTree({1, kLeaves}, {200, 30}), false},
                     {"few again", 0, test::levelTree({1, kLeaves}, {203, 30}), false}};
    options.axes = {{"chunk_tokens", {"4096"}}, {"tile_q", {"32"}}, {"prices", {"machine"}}};
    behaviour.time = [gain](const plan::Plan &plan) {
      const bool isMixed = plan.runs.size() > kLeaves + 1;
      return plan.partition != spec::Partition::Flatten ? 100 : isMixed ? 50 * (1 - gain) : 50;
    };
    const auto report = runAfter([](json &entries) {
      json mixed = entries.at(0);
      mixed["signature"] = ofOtherType(mixed["signature"]);
      mixed["config"]["order"] = "mixed";
      entries.push_back(mixed);
    });
    EXPECT_EQ(report.classes.size(), 1U);
    const config::Config &taken = report.classes.at(0).entry.config;
    EXPECT_EQ(taken.partition, spec::Partition::Flatten);
    return config::orderName(taken.order);
  }

  static std::string ofOtherType(std::string signature) {
    const bool isF16 = signature.find("-f16-") != std::string::npos;
    const std::string from = isF16 ? "-f16-" : "-bf16-", to = isF16 ? "-bf16-" : "-f16-";
    return signature.replace(signature.find(from), from.size(), to);
  }

  TuneReport full;
};

TEST_F(RelatedTest, WhatIsKnownForAnotherTypeIsConfirmedWithoutASearch) {
  const auto report = runAfter([](json &entries) {
    for (json &entry : entries)
      entry["signature"] = ofOtherType(entry["signature"]);
  });
  ASSERT_EQ(report.classes.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LE(report.classes[i].candidates, 2); // the class's own, and the neighbour's
    EXPECT_GT(full.classes[i].candidates, 3);
    EXPECT_EQ(config::toJson(report.classes[i].entry.config), config::toJson(full.classes[i].entry.config));
    EXPECT_GT(report.classes[i].gain, 1.5);
  }
  EXPECT_LT(report.made, full.made);
  EXPECT_THAT(events("candidate"), testing::Contains(testing::ResultOf(
                                       [](const json &event) { return event["origin"]; }, "related")));
  // Its results are the other type's: both are there now.
  EXPECT_EQ(config_cache::readConfigFile(report.configPath).file.entries.size(), 4U);
}

/// Tokens in turn need a new plan in each step, which a measurement of one step does not show.
TEST_F(RelatedTest, TokensInTurnAreNotTakenWhereTheyGainLittle) { EXPECT_EQ(orderTaken(0.004), "from_root"); }
TEST_F(RelatedTest, TokensInTurnAreTakenWhereTheyGainMore) { EXPECT_EQ(orderTaken(0.04), "mixed"); }

TEST_F(RelatedTest, AClassOfWhichNothingIsKnownIsSearched) {
  const auto report = runAfter([&](json &entries) { entries.erase(0); });
  EXPECT_GT(report.classes[0].candidates, 3);
  EXPECT_LE(report.classes[1].candidates, 2);
}

TEST_F(RelatedTest, WhatOtherKernelsWereTunedToIsMeasuredAnew) {
  const auto report = runAfter([&](json &entries) {
    for (json &entry : entries)
      entry["provenance"]["kernel_hash"] = "0123";
  });
  for (const ClassReport &one : report.classes) {
    EXPECT_LE(one.candidates, 2);
    EXPECT_EQ(one.entry.config.chunkTokens, 64);
    EXPECT_NE(one.entry.provenance.kernelHash, "0123");
  }
}

TEST_F(RelatedTest, WhereTheUntunedConfigWasKeptItIsMeasuredAlone) {
  behaviour.time = [](const plan::Plan &) { return 100.0; };
  const auto report = runAfter([](json &) {});
  for (const ClassReport &one : report.classes) {
    EXPECT_TRUE(one.isDone);
    EXPECT_TRUE(one.entry.keepsDefault);
    EXPECT_EQ(one.candidates, 0);
    EXPECT_NEAR(one.entry.measurement.untunedUs, 100, 1e-6);
  }
}

TEST_F(RelatedTest, WhatHasBecomeSlowIsNotTaken) {
  const auto report = runAfter(
      [&](json &) { behaviour.time = [](const plan::Plan &plan) { return 20000 / landscape(plan); }; });
  for (const ClassReport &one : report.classes)
    EXPECT_TRUE(one.entry.keepsDefault);
}

TEST_F(RelatedTest, AnInterruptedOneGoesOnWithoutASearch) {
  int asked = -1;
  isCancelled = [&] { return asked >= 0 && ++asked > 12; };
  const auto first = runAfter([&](json &) { asked = 0; });
  EXPECT_EQ(first.ended, Ended::Interrupted);
  EXPECT_GT(first.made, 0);
  isCancelled = {};
  const auto second = run();
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(second->isResumed);
  EXPECT_EQ(second->reused, first.made);
  for (const ClassReport &one : second->classes) {
    EXPECT_TRUE(one.isDone);
    EXPECT_LE(one.candidates, 2);
  }
}

} // namespace
} // namespace deft::session
