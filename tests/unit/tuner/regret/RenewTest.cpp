#include "tuner/regret/Renew.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deft::regret {

using namespace config_cache;

namespace {

constexpr int kOwn = 256, kNearOne = 512, kUntuned = 1024;

/// A stale entry's row on one tree: what its config takes, what a near one's and what the untuned choice.
RegretRow rowOf(const Entry &entry, double own, std::optional<double> near, double untuned) {
  RegretRow row;
  row.hidden = {entry, h200(), Origin::User, "file.json"};
  row.isStale = true;
  row.tree = 0;
  row.us = own;
  if (near) {
    Candidate candidate;
    candidate.rule = Rule::Nearby;
    candidate.config = someConfig(kNearOne);
    candidate.from = LoadedEntry{someEntry({15, 6, 3, 2, 0}, kNearOne), h200(), Origin::User, "file.json"};
    row.offers.push_back({candidate, near, std::nullopt});
  }
  Candidate heuristic;
  heuristic.config = someConfig(kUntuned);
  row.offers.push_back({heuristic, untuned, std::nullopt});
  return row;
}

Entry staleEntry() {
  Entry entry = someEntry({14, 6, 3, 2, 0}, kOwn);
  entry.provenance.kernelHash = "old";
  return entry;
}

const Provenance kNow{"0.2.0", "new", "2026-11-26T18:00:00Z", "CUDA 13.0", ""};

Renewal only(const std::vector<RegretRow> &rows) {
  RegretReport report;
  report.rows = rows;
  const std::vector<Renewal> renewals = renew(report, kNow);
  EXPECT_EQ(renewals.size(), 1U);
  return renewals.empty() ? Renewal{} : renewals.front();
}

TEST(RenewTest, AConfigThatIsStillFasterStaysWithItsNewTimes) {
  const Renewal renewal = only({rowOf(staleEntry(), 10, 9, 11), rowOf(staleEntry(), 40, 39, 44)});
  EXPECT_TRUE(renewal.isOwn);
  EXPECT_NEAR(renewal.before, 1.25, 1e-9);
  EXPECT_FALSE(renewal.entry.keepsDefault);
  EXPECT_EQ(renewal.entry.config.chunkTokens, kOwn);
  EXPECT_NEAR(renewal.entry.measurement.tunedUs, 20, 1e-9); // the geometric mean
  EXPECT_NEAR(renewal.entry.measurement.untunedUs, 22, 1e-9);
  EXPECT_EQ(renewal.entry.measurement.trees, 2);
  EXPECT_EQ(renewal.entry.provenance.kernelHash, "new");
  EXPECT_EQ(renewal.entry.provenance.note, "tuned on 2001-11-21 for other kernels, renewed");
}

TEST(RenewTest, OneThatIsNoLongerFasterTakesWhatIsNear) {
  const Renewal renewal = only({rowOf(staleEntry(), 20, 15, 20)});
  EXPECT_FALSE(renewal.isOwn);
  EXPECT_FALSE(renewal.entry.keepsDefault);
  EXPECT_EQ(renewal.entry.config.chunkTokens, kNearOne);
  EXPECT_NEAR(renewal.entry.measurement.gain(), 20.0 / 15, 1e-9);
}

TEST(RenewTest, WhereNothingIsClearlyFasterTheUntunedChoiceStays) {
  for (const std::optional<double> near : {std::optional<double>(), std::optional<double>(19.8)}) {
    const Renewal renewal = only({rowOf(staleEntry(), 20.1, near, 20)});
    EXPECT_TRUE(renewal.entry.keepsDefault);
    EXPECT_FALSE(renewal.isOwn);
    EXPECT_EQ(renewal.entry.config.chunkTokens, kUntuned);
    EXPECT_EQ(renewal.entry.measurement.gain(), 1);
  }
}

TEST(RenewTest, ALossOnOneTreeOutweighsTheMean) {
  const Renewal renewal = only({rowOf(staleEntry(), 10, {}, 20), rowOf(staleEntry(), 21, {}, 20)});
  EXPECT_TRUE(renewal.entry.keepsDefault);
}

TEST(RenewTest, AnEntryThatKeptTheUntunedChoiceMayFindANearOne) {
  Entry entry = staleEntry();
  entry.keepsDefault = true;
  EXPECT_EQ(only({rowOf(entry, 20, 15, 20)}).entry.config.chunkTokens, kNearOne);
  // Its own config was the untuned one of other kernels, and is not raced.
  EXPECT_TRUE(only({rowOf(entry, 10, {}, 20)}).entry.keepsDefault);
}

TEST(RenewTest, ANarrowEntryIsJudgedByTheTreesThatItIsFor) {
  Entry entry = staleEntry();
  entry.onlyFor = {Coordinates{14, 6, 3, 2, 0}};
  RegretRow here = rowOf(entry, 10, {}, 12), far = rowOf(entry, 20, {}, 20);
  here.at = entry.onlyFor.front();
  far.at = entry.onlyFor.front();
  for (double &x : *far.at)
    x += 5;
  const Renewal renewal = only({here, far});
  EXPECT_TRUE(renewal.isOwn);
  EXPECT_EQ(renewal.entry.measurement.trees, 1);
  EXPECT_EQ(renewal.entry.onlyFor.size(), 1U);
  here.us = 12; // it lost what it had
  EXPECT_TRUE(only({here, far}).entry.onlyFor.empty());
}

TEST(RenewTest, FreshEntriesAndThoseWithoutTimesAreLeftOut) {
  RegretReport report;
  report.rows = {rowOf(someEntry(), 10, {}, 20), rowOf(staleEntry(), 10, {}, 20)};
  report.rows[0].isStale = false;
  report.rows[1].us.reset();
  EXPECT_TRUE(renew(report, kNow).empty());
}

} // namespace
} // namespace deft::regret
