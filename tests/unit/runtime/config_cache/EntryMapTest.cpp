#include "runtime/config_cache/EntryMap.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace deft::config_cache {
namespace {

/// What is left of two entries of one key, in whatever order they come.
Entry betterOf(const Entry &a, const Entry &b) {
  std::vector<Entry> found;
  for (const auto &[first, second] : {std::pair(a, b), std::pair(b, a)}) {
    EntryMap map(DeviceKey::Kind::Gpu);
    map.add(first);
    map.add(second);
    const std::vector<Entry> all = map.take();
    EXPECT_EQ(all.size(), 1U);
    found.push_back(all.front());
  }
  EXPECT_TRUE(areEqual(found[0], found[1]));
  return found[0];
}

Entry with(const std::function<void(Entry &)> &change) {
  Entry entry = someEntry({14, 6, 3, 2, 0}, 512);
  change(entry);
  return entry;
}

void makeStale(Entry &entry) { entry.provenance.kernelHash = "0123456789abcdef"; }

TEST(EntryMapTest, TheBetterOneOfAKeyIsKept) {
  const Entry good = someEntry();
  const std::vector<Entry> worse{
      with(makeStale),
      with([](Entry &e) { e.isComplete = false; }),
      with([](Entry &e) { e.provenance.date = "2001-01-01T00:00:00Z"; }),
      with([](Entry &e) { e.measurement.tunedUs += 1; }),
  };
  for (const Entry &entry : worse)
    EXPECT_TRUE(areEqual(betterOf(good, entry), good)) << toJson(entry);
}

TEST(EntryMapTest, FreshKernelsCountMoreThanAWholeSearchAndThatMoreThanADate) {
  const Entry part = with([](Entry &e) { e.isComplete = false; });
  const Entry staleWhole = with([](Entry &e) {
    makeStale(e);
    e.provenance.date = "2001-12-24T00:00:00Z";
  });
  EXPECT_TRUE(areEqual(betterOf(part, staleWhole), part));
  const Entry laterPart = with([](Entry &e) {
    e.isComplete = false;
    e.provenance.date = "2001-12-24T00:00:00Z";
  });
  EXPECT_TRUE(areEqual(betterOf(someEntry(), laterPart), someEntry()));
}

TEST(EntryMapTest, ADateThatIsNotYetCountsAsNone) {
  const auto slowerOf = [](const std::string &date) {
    return with([&](Entry &e) {
      e.provenance.date = date;
      e.measurement.tunedUs += 1;
    });
  };
  for (const char *date : {"9999-01-01T00:00:00Z", "soon"})
    EXPECT_TRUE(areEqual(betterOf(someEntry(), slowerOf(date)), someEntry())) << date;
  // Another machine's clock may be ahead by some hours.
  const Entry ahead = slowerOf(timestamp(std::chrono::hours(12)));
  EXPECT_TRUE(areEqual(betterOf(someEntry(), ahead), ahead));
  // Of two without one the faster.
  const Entry far = with([](Entry &e) { e.provenance.date = "9999-01-01T00:00:00Z"; });
  EXPECT_TRUE(areEqual(betterOf(far, slowerOf("9999-12-31T00:00:00Z")), far));
}

TEST(EntryMapTest, KeysThatCameMoreThanOnceAreTold) {
  EntryMap map(DeviceKey::Kind::Gpu);
  map.add(someEntry());
  map.add(someEntry());
  map.add(someEntry({15, 6, 3, 2, 0}));
  int told = 0;
  map.eachRepeated([&](const std::string &key, int times) {
    ++told;
    EXPECT_EQ(key, keyOf(someEntry()));
    EXPECT_EQ(times, 2);
  });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(map.take().size(), 2U);
  EXPECT_TRUE(map.take().empty());
}

TEST(EntryMapTest, ASearchThatWasCutShortDoesNotReplaceAWholeOneOfTodaysKernels) {
  const Entry cut = with([](Entry &e) { e.isComplete = false; });
  for (const bool isFresh : {true, false}) {
    Entry old = someEntry();
    if (!isFresh)
      makeStale(old);
    EntryMap map(DeviceKey::Kind::Gpu);
    map.add(old);
    WriteReport report;
    map.put(cut, Conflict::Replace, report);
    EXPECT_EQ(report.kept, isFresh ? 1 : 0);
    EXPECT_EQ(report.replaced, isFresh ? 0 : 1);
    EXPECT_TRUE(areEqual(map.take().front(), isFresh ? old : cut));
  }
}

TEST(EntryMapTest, MergingTakesTheBetterOneAndReplacingTheNewOne) {
  const Entry slower = with([](Entry &e) { e.measurement.tunedUs += 1; });
  for (const Conflict conflict : {Conflict::Merge, Conflict::Replace}) {
    EntryMap map(DeviceKey::Kind::Gpu);
    map.add(someEntry());
    WriteReport report;
    map.put(slower, conflict, report);
    map.put(someEntry({15, 6, 3, 2, 0}), conflict, report);
    EXPECT_EQ(report.added, 1);
    EXPECT_EQ(report.replaced, conflict == Conflict::Replace ? 1 : 0);
    EXPECT_EQ(report.unchanged, conflict == Conflict::Replace ? 0 : 1);
  }
}

TEST(EntryMapTest, WhatIsKeptAsItStandsIsThereOnceAndSorted) {
  std::vector<std::string> kept{R"({"b":1})", R"({"a":2})"};
  addKept(kept, {R"({"a":1})", R"({"b":1})"});
  EXPECT_EQ(kept, (std::vector<std::string>{R"({"a":1})", R"({"a":2})", R"({"b":1})"}));
}

} // namespace
} // namespace deft::config_cache
