#include "tuner/regret/RegretSummary.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace deft::regret {

using namespace config_cache;

namespace {

const TreeClass kHere{14, 6, 3, 2, 0};

/// A row whose entry takes 100 us.
RegretRow rowOf(std::vector<RegretOffer> offers) {
  RegretRow row;
  row.hidden.entry = someEntry(kHere);
  row.us = 100;
  row.offers = std::move(offers);
  return row;
}

RegretOffer offer(Rule rule, double us, double distance = 0, const TreeClass &treeClass = kHere) {
  RegretOffer made;
  made.candidate.rule = rule;
  made.candidate.distance = distance;
  if (rule != Rule::Heuristic)
    made.candidate.from = LoadedEntry{someEntry(treeClass), h200(), Origin::User, "file.json"};
  made.us = us;
  made.regret = us / 100 - 1;
  return made;
}

RegretReport summarized(std::vector<RegretRow> rows) {
  RegretReport report;
  report.rows = std::move(rows);
  summarize(report);
  return report;
}

TEST(RegretSummaryTest, OfARuleTheFirstOfferOfEachRowCounts) {
  const RegretReport report = summarized({
      rowOf({offer(Rule::Sibling, 110), offer(Rule::Nearby, 120), offer(Rule::Nearby, 90),
             offer(Rule::Heuristic, 130)}),
      rowOf({offer(Rule::Nearby, 150), offer(Rule::Heuristic, 140)}),
      rowOf({offer(Rule::Nearby, 105), offer(Rule::Heuristic, 105)}),
      rowOf({offer(Rule::Heuristic, 300)}),
  });
  ASSERT_EQ(report.rules.size(), 3U);
  const RuleRegret &sibling = report.rules[0], &nearby = report.rules[1], &heuristic = report.rules[2];
  EXPECT_EQ(sibling.rule, Rule::Sibling);
  EXPECT_EQ(sibling.offers, 1);
  EXPECT_EQ(sibling.atLeastAsFast, 1);
  EXPECT_EQ(nearby.offers, 3);
  EXPECT_EQ(nearby.chosen, 2) << "in the first row a sibling comes before";
  EXPECT_NEAR(nearby.median, 0.2, 1e-9);
  EXPECT_NEAR(nearby.worst, 0.5, 1e-9);
  EXPECT_EQ(nearby.compared, 3);
  EXPECT_EQ(nearby.atLeastAsFast, 2) << "120 against 130, and 105 against 105";
  EXPECT_EQ(heuristic.offers, 4);
  EXPECT_EQ(heuristic.chosen, 1);
  EXPECT_EQ(heuristic.compared, 0);
  EXPECT_NEAR(heuristic.worst, 2, 1e-9);
}

TEST(RegretSummaryTest, WhatWasNotTimedCountsNowhere) {
  RegretOffer untimed = offer(Rule::Nearby, 0, 0.3, {15, 6, 3, 2, 0});
  untimed.us = untimed.regret = std::nullopt;
  RegretOffer heuristic = offer(Rule::Heuristic, 0);
  heuristic.us = heuristic.regret = std::nullopt;
  const RegretReport none = summarized({rowOf({untimed, heuristic})});
  EXPECT_TRUE(none.rules.empty() && none.distances.empty() && none.steps.empty());
  const RegretReport alone = summarized({rowOf({offer(Rule::Nearby, 110, 0.3), heuristic})});
  ASSERT_EQ(alone.rules.size(), 1U);
  EXPECT_EQ(alone.rules[0].compared, 0);
}

TEST(RegretSummaryTest, BandsAreHalvesAndStepsAreOfOneNumber) {
  const auto near = [](double distance, const TreeClass &treeClass) {
    return rowOf({offer(Rule::Nearby, 110, distance, treeClass), offer(Rule::Heuristic, 120)});
  };
  RegretRow stale = near(0.5, {14, 7, 3, 2, 0});
  stale.offers[0].candidate.isStale = true;
  const RegretReport report =
      summarized({near(0.5, {14, 7, 3, 2, 0}), near(0.51, {14, 5, 3, 2, 0}), near(1, {14, 8, 3, 2, 0}),
                  near(1.2, {15, 7, 3, 2, 0}), near(0.2, kHere), stale});
  std::map<std::string, int> bands, steps;
  for (const NearbyRegret &one : report.distances)
    bands[one.of] = one.offers;
  for (const NearbyRegret &one : report.steps)
    steps[one.of] = one.offers;
  EXPECT_EQ(bands, (std::map<std::string, int>{{"distance up to 0.5", 2},
                                               {"distance up to 0.5, stale", 1},
                                               {"distance up to 1.0", 2},
                                               {"distance up to 1.5", 1}}));
  EXPECT_EQ(steps, (std::map<std::string, int>{
                       {"one step of q", 2}, {"one step of q, stale", 1}, {"another variant", 1}}));
}

/// An order is judged over all rows: where it has nothing, the untuned choice stays.
TEST(RegretSummaryTest, OrdersAreMeansOverAllRows) {
  RegretRow stale = rowOf({offer(Rule::Heuristic, 50)});
  stale.isStale = true;
  const RegretReport report = summarized({rowOf({offer(Rule::Nearby, 80, 0.4), offer(Rule::Heuristic, 200)}),
                                          rowOf({offer(Rule::Heuristic, 400)}), stale});
  std::map<std::string, OrderRegret> orders;
  for (const OrderRegret &order : report.orders)
    orders[order.of] = order;
  EXPECT_NEAR(orders.at("the entries themselves").mean, std::sqrt(0.5 * 0.25), 1e-9);
  EXPECT_EQ(orders.at("the entries themselves").rows, 2);
  EXPECT_NEAR(orders.at("the entries themselves, stale").mean, 2, 1e-9);
  const OrderRegret &near = orders.at("distance up to 0.5, fresh alone");
  EXPECT_EQ(near.rows, 3);
  EXPECT_EQ(near.chosen, 1);
  EXPECT_NEAR(near.mean, std::cbrt(0.4), 1e-9);
  EXPECT_EQ(near.worst, 1);
}

} // namespace
} // namespace deft::regret
