#include "tuner/regret/Regret.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/DefaultConfig.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace deft::regret {

using namespace config_cache;

namespace {

constexpr int kUntunedChunk = 1024;

class RegretTest : public testing::Test {
protected:
  RegretTest() {
    request_.target = target::findTarget("sm_90a");
    request_.untuned = [](const VariantSignature &) -> support::Result<std::vector<config::Config>> {
      return std::vector{someConfig(kUntunedChunk)};
    };
    cache_ = ConfigCache::load({}, h200());
  }
  void add(const Entry &entry, const DeviceKey &device = h200()) {
    cache_.add({entry, device, Origin::User, "file.json"});
  }
  /// Times by the chunk, and what was asked for.
  void measureBy(std::map<int, double> usOfChunk) {
    request_.measure = [this, usOfChunk](const Entry &, int, const std::vector<config::Config> &configs)
        -> support::Result<std::vector<double>> {
      std::vector<double> times;
      for (const config::Config &config : configs)
        times.push_back(usOfChunk.at(config.chunkTokens));
      asked_.push_back(configs.size());
      return times;
    };
  }

  static Entry stale(Entry entry) {
    entry.provenance.kernelHash = "old";
    return entry;
  }

  ConfigCache cache_;
  RegretRequest request_;
  std::vector<std::size_t> asked_;
};

const TreeClass kHere{14, 6, 3, 2, 0}, kNear{15, 6, 3, 2, 0}, kFar{20, 10, 0, 0, 0};

TEST_F(RegretTest, EachEntryIsHiddenAndEachRuleOffers) {
  add(someEntry(kHere, 128));
  add(someEntry(kNear, 256));
  add(someEntry(kFar, 512));
  add(someEntry(kHere, 64), h100());
  measureBy({{64, 11}, {128, 10}, {256, 12}, {512, 10}, {kUntunedChunk, 20}});
  const auto report = reportRegret(cache_, request_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->rows.size(), 3U); // the sibling's own entry is not ours to hide

  const RegretRow &here = report->rows[0];
  EXPECT_EQ(here.us, 10);
  ASSERT_EQ(here.offers.size(), 3U);
  EXPECT_EQ(here.offers[0].candidate.rule, Rule::Sibling);
  EXPECT_NEAR(*here.offers[0].regret, 0.1, 1e-9);
  EXPECT_EQ(here.offers[1].candidate.rule, Rule::Nearby);
  EXPECT_NEAR(*here.offers[1].regret, 0.2, 1e-9);
  EXPECT_EQ(here.offers[2].candidate.rule, Rule::Heuristic);
  EXPECT_NEAR(*here.offers[2].regret, 1.0, 1e-9);
  EXPECT_EQ(report->rows[2].offers.size(), 1U); // nothing is near

  ASSERT_EQ(report->rules.size(), 3U);
  const RuleRegret &nearby = report->rules[1], &heuristic = report->rules[2];
  EXPECT_EQ(nearby.rule, Rule::Nearby);
  EXPECT_EQ(nearby.offers, 2);
  EXPECT_EQ(nearby.chosen, 1);
  EXPECT_EQ(nearby.compared, 2);
  EXPECT_EQ(nearby.atLeastAsFast, 2);
  EXPECT_EQ(heuristic.offers, 3);
  EXPECT_EQ(heuristic.chosen, 1);
  EXPECT_EQ(heuristic.compared, 0);
  EXPECT_NEAR(heuristic.worst, 1.0, 1e-9);
}

TEST_F(RegretTest, DistancesAreJudgedByAllThatIsNear) {
  const TreeClass twoSteps{16, 6, 3, 2, 0}, sharing{14, 6, 4, 2, 0}, far{14, 9, 3, 2, 0};
  add(someEntry(kHere, 128));
  add(someEntry(kNear, 256));
  add(someEntry(twoSteps, 512));
  add(someEntry(sharing, 64));
  add(someEntry(far, 32));
  measureBy({{32, 19}, {64, 40}, {128, 10}, {256, 12}, {512, 16}, {kUntunedChunk, 20}});
  request_.isWanted = [](const Entry &entry) { return entry.treeClass == kHere; };
  request_.nearbyLimit = 3;
  request_.offersOfRule = 4;
  const auto report = reportRegret(cache_, request_);
  ASSERT_EQ(report->rows.size(), 1U);
  EXPECT_EQ(report->rows[0].offers.size(), 5U); // the four, and the heuristic
  ASSERT_EQ(report->rules.size(), 2U);
  EXPECT_EQ(report->rules[0].offers, 1); // of a rule, what would be chosen
  EXPECT_EQ(report->rules[0].atLeastAsFast, 1);

  ASSERT_EQ(report->distances.size(), 3U);
  EXPECT_EQ(report->distances[0].of, "distance up to 0.5");
  EXPECT_NEAR(report->distances[0].median, 0.2, 1e-9);
  const NearbyRegret &one = report->distances[1];
  EXPECT_EQ(one.of, "distance up to 1.0");
  EXPECT_EQ(one.offers, 2);
  EXPECT_EQ(one.beatHeuristic, 1);
  EXPECT_NEAR(one.worst, 3, 1e-9);
  EXPECT_EQ(report->distances[2].of, "distance up to 3.0");

  ASSERT_EQ(report->steps.size(), 2U); // two steps of t, or three of q, are none of these
  EXPECT_EQ(report->steps[0].of, "one step of s");
  EXPECT_NEAR(report->steps[0].median, 3, 1e-9);
  EXPECT_EQ(report->steps[1].of, "one step of t");
}

// An entry for some trees of its class alone knows these by what the mask shows of them.
TEST_F(RegretTest, TreesStandWhereTheMaskShowsThem) {
  spec::VisibleBounds::Bound window; // kv_pos >= q_pos - 63
  window.at.qPos = 1;
  window.at.rest.constant = 1 - 64;
  request_.reach = plan::Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {});
  tree::KvTree tree;
  ASSERT_TRUE(tree.addQuery(tree.addNode(-1, 1 << 14, 0).value()));
  request_.treesOf = [&](const Entry &) { return std::vector<const tree::KvTree *>{&tree}; };
  Entry entry = someEntry(kHere, 128);
  entry.onlyFor = {TreeClassifier(request_.reach).measure(tree).place()};
  add(entry);
  measureBy({{128, 10}, {kUntunedChunk, 20}});
  const auto report = reportRegret(cache_, request_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->rows.size(), 1U);
  EXPECT_NEAR(report->rows[0].at.value()[0], 6, 1e-9) << "64 tokens are seen";
  EXPECT_EQ(report->rows[0].us, 10) << "of the entry's own config";
}

// What the rules may offer is what the variant itself can run.
TEST_F(RegretTest, OffersAreLegalForTheVariantThatIsTimed) {
  const Entry own = someEntry(kHere, 128), near = someEntry(kNear, 256);
  add(own);
  add(near);
  spec::Variant variant = own.signature.variant();
  variant.schedule.emplace().chunk = spec::TuneList{{128}, true, {}};
  request_.variant = &variant;
  request_.isWanted = [](const Entry &entry) { return entry.treeClass == kHere; };
  measureBy({{128, 10}, {kUntunedChunk, 20}});
  const auto report = reportRegret(cache_, request_);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->rows.size(), 1U);
  EXPECT_EQ(report->rows[0].offers.size(), 1U) << "the near one's chunk is not in the schedule";
}

TEST_F(RegretTest, AConfigThatIsOfferedTwiceIsTimedOnce) {
  add(someEntry(kHere, 128));
  add(someEntry(kNear, 128));
  measureBy({{128, 10}, {kUntunedChunk, 20}});
  const auto report = reportRegret(cache_, request_);
  EXPECT_EQ(asked_, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(report->rows[0].offers[0].regret, 0);
}

TEST_F(RegretTest, AnOrderThatDoesNotHoldIsSeen) {
  add(someEntry(kHere, 128));
  add(someEntry(kNear, 256));
  measureBy({{128, 10}, {256, 30}, {kUntunedChunk, 20}});
  const auto report = reportRegret(cache_, request_);
  ASSERT_EQ(report->rules[0].rule, Rule::Nearby);
  EXPECT_EQ(report->rules[0].compared, 2);
  EXPECT_EQ(report->rules[0].atLeastAsFast, 1); // 30 against 20, and 10 against 20
  EXPECT_NEAR(report->rules[0].worst, 2.0, 1e-9);
}

TEST_F(RegretTest, WithoutMeasuringItTellsWhatEntriesRemember) {
  add(someEntry(kHere, 128));
  add(someEntry(kNear, 256));
  const auto report = reportRegret(cache_, request_);
  const RegretRow &row = report->rows[0];
  ASSERT_EQ(row.offers.size(), 2U);
  EXPECT_FALSE(row.offers[0].us);
  EXPECT_NEAR(*row.offers[1].regret, 0.25, 1e-9); // the gain of the entry
}

TEST_F(RegretTest, StaleEntriesAndSecondCopiesAreLeftOut) {
  add(stale(someEntry(kHere, 128)));
  add(someEntry(kNear, 256));
  cache_.add({someEntry(kNear, 64), h200(), Origin::Installed, "other.json"});
  const auto report = reportRegret(cache_, request_);
  ASSERT_EQ(report->rows.size(), 1U);
  EXPECT_EQ(report->rows[0].hidden.path, "file.json");
}

TEST_F(RegretTest, OrdersAreJudgedAgainstTheUntunedChoice) {
  const TreeClass twoSteps{16, 6, 3, 2, 0};
  add(someEntry(kHere, 128));
  add(stale(someEntry(kNear, 256)));
  add(someEntry(twoSteps, 512));
  measureBy({{128, 10}, {256, 8}, {512, 40}, {kUntunedChunk, 20}});
  request_.withStale = true;
  request_.isWanted = [](const Entry &entry) { return entry.treeClass == kHere; };
  request_.offersOfRule = 4;
  const auto report = reportRegret(cache_, request_);
  std::map<std::string, double> means;
  for (const OrderRegret &order : report->orders) {
    EXPECT_EQ(order.rows, 1);
    EXPECT_EQ(order.chosen, 1);
    EXPECT_EQ(order.worst, order.mean);
    means[order.of] = order.mean;
  }
  EXPECT_NEAR(means.at("the entries themselves"), 0.5, 1e-9);
  EXPECT_FALSE(means.contains("distance up to 0.5, fresh alone")); // there is none
  EXPECT_NEAR(means.at("distance up to 0.5, fresh before stale"), 0.4, 1e-9);
  EXPECT_NEAR(means.at("distance up to 1.0, fresh alone"), 2, 1e-9);
  EXPECT_NEAR(means.at("distance up to 1.0, fresh before stale"), 2, 1e-9);
  EXPECT_NEAR(means.at("distance up to 1.0, near before far"), 0.4, 1e-9);
}

TEST_F(RegretTest, StaleEntriesCanBeJudgedToo) {
  add(stale(someEntry(kHere, 128)));
  measureBy({{128, 25}, {kUntunedChunk, 20}});
  request_.withStale = true;
  const auto report = reportRegret(cache_, request_);
  ASSERT_EQ(report->rows.size(), 1U);
  EXPECT_TRUE(report->rows[0].isStale);
  ASSERT_EQ(report->orders.size(), 1U);
  EXPECT_EQ(report->orders[0].of, "the entries themselves, stale");
  EXPECT_NEAR(report->orders[0].mean, 1.25, 1e-9);
}

/// The untuned choice is the tree's: by wide blocks for one, by light ones for the other.
TEST_F(RegretTest, EachTreeOfTheClassHasTheUntunedChoiceThatItWouldGet) {
  const tree::KvTree light = test::levelTree({1, 50}, {4000, 200}),
                     wide = test::levelTree({1, 1024}, {2048, 32});
  Entry entry = someEntry(kHere, 128);
  entry.keepsDefault = true;
  add(entry);
  request_.units = 132;
  request_.untuned = [&](const VariantSignature &signature) {
    return kernels::defaultConfigs(signature.variant(), request_.target);
  };
  request_.treesOf = [&](const Entry &) { return std::vector{&light, &wide}; };
  std::vector<std::pair<int, int>> asked; // tree, rows of the only config
  request_.measure = [&](const Entry &, int tree,
                         const std::vector<config::Config> &configs) -> support::Result<std::vector<double>> {
    EXPECT_EQ(configs.size(), 1U); // an entry that keeps the untuned choice runs that
    asked.emplace_back(tree, config::mostRows(configs.front()));
    return std::vector<double>(configs.size(), 10);
  };
  const auto report = reportRegret(cache_, request_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(asked, (std::vector<std::pair<int, int>>{{0, 64}, {1, 128}}));
  EXPECT_EQ(report->rows[1].tree, 1);
}

TEST_F(RegretTest, AFailedMeasurementIsAnError) {
  add(someEntry(kHere, 128));
  request_.measure = [](const Entry &, int,
                        const std::vector<config::Config> &) -> support::Result<std::vector<double>> {
    return support::Error{support::ErrorCode::Environment, "no GPU", ""};
  };
  EXPECT_EQ(reportRegret(cache_, request_).error().message, "no GPU");
}

TEST_F(RegretTest, JsonHasRowsAndRules) {
  add(someEntry(kHere, 128));
  const nlohmann::json json = toJson(*reportRegret(cache_, request_));
  EXPECT_EQ(json["format"], "deftc-regret");
  EXPECT_EQ(json["rows"][0]["class"], kHere.text());
  EXPECT_EQ(json["rows"][0]["offers"][0]["rule"], "heuristic");
  EXPECT_EQ(json["rules"][0]["rule"], "heuristic");
}

} // namespace
} // namespace deft::regret
