#include "tuner/bench/Scores.h"

#include <gtest/gtest.h>

namespace deft::bench {
namespace {

RowScore row(const char *name, double coldUs, double floorUs, double peerUs) {
  RowScore score;
  score.name = name;
  score.coldUs = coldUs;
  score.floorUs = floorUs;
  score.peerUs = peerUs;
  return score;
}

TEST(ScoresTest, MeansAreGeometricAndTheWorstRowIsNamed) {
  const RowScore rows[] = {row("a", 20, 10, 40), row("b", 80, 10, 40)};
  const Summary summary = summarize(rows);
  EXPECT_EQ(summary.overFloor.rows, 2);
  EXPECT_DOUBLE_EQ(summary.overFloor.mean, 4);
  EXPECT_DOUBLE_EQ(summary.overFloor.worst, 8);
  EXPECT_EQ(summary.overFloor.worstName, "b");
  EXPECT_EQ(summary.overFloor.beyond, (std::vector<std::string>{"a", "b"}));
  EXPECT_DOUBLE_EQ(summary.overPeer.mean, 1);
  EXPECT_EQ(summary.overPeer.beyond, std::vector<std::string>{"b"});
}

TEST(ScoresTest, WhatIsNotKnownDoesNotCount) {
  const RowScore rows[] = {row("a", 20, 10, 0), row("b", 12, 0, 24)};
  const Summary summary = summarize(rows);
  EXPECT_EQ(summary.overFloor.rows, 1);
  EXPECT_EQ(summary.overPeer.rows, 1);
  EXPECT_DOUBLE_EQ(summary.overPeer.mean, 0.5);
  EXPECT_EQ(summary.warm.rows, 0);
  EXPECT_EQ(summarize({}).overFloor.mean, 0);
}

TEST(ScoresTest, LargeFloorsHaveALimitOfTheirOwn) {
  const RowScore rows[] = {row("small", 75, 50, 0), row("large", 120, 100, 0), row("slow", 130, 100, 0)};
  const Summary summary = summarize(rows);
  EXPECT_EQ(summary.overLargeFloor.rows, 2);
  EXPECT_EQ(summary.overLargeFloor.beyond, std::vector<std::string>{"slow"});
}

TEST(ScoresTest, ScatteringIsHeldAgainstEachRowsLimit) {
  RowScore tokens = row("tokens", 10, 5, 0), pages = row("pages", 10, 5, 0);
  tokens.scatteredUs = pages.scatteredUs = 12;
  tokens.scatteredLimit = kScatteredTokensLimit;
  pages.scatteredLimit = kScatteredPagesLimit;
  const RowScore rows[] = {tokens, pages};
  EXPECT_EQ(summarize(rows).scattered.beyond, std::vector<std::string>{"pages"});
}

} // namespace
} // namespace deft::bench
