#include "tuner/session/ClassClock.h"

#include <gtest/gtest.h>

namespace deft::session {
namespace {

using std::chrono::seconds;

const ClassClock::Time kStart{};

TEST(ClassClockTest, ASearchLeavesTimeForWhatComesAfterIt) {
  const ClassClock clock(kStart, kStart + seconds(100), std::nullopt);
  EXPECT_FALSE(clock.isSearchOver(kStart + seconds(69)));
  EXPECT_TRUE(clock.isSearchOver(kStart + seconds(71)));
  EXPECT_FALSE(clock.isOver(kStart + seconds(99)));
  EXPECT_TRUE(clock.isOver(kStart + seconds(101)));
}

TEST(ClassClockTest, WhatAClassCannotDoWithoutPutsItsEndOff) {
  ClassClock clock(kStart, kStart + seconds(100), std::nullopt);
  clock.addSetup(seconds(50));
  EXPECT_FALSE(clock.isSearchOver(kStart + seconds(50 + 69)));
  EXPECT_TRUE(clock.isSearchOver(kStart + seconds(50 + 71)));
  EXPECT_FALSE(clock.isOver(kStart + seconds(149)));
}

TEST(ClassClockTest, NothingPutsTheEndOfTheSessionOff) {
  ClassClock clock(kStart, kStart + seconds(100), kStart + seconds(120));
  clock.addSetup(seconds(50));
  EXPECT_TRUE(clock.isOver(kStart + seconds(121)));
  // Of the seventy seconds that are left for it, the search has seven tenths.
  EXPECT_FALSE(clock.isSearchOver(kStart + seconds(50 + 48)));
  EXPECT_TRUE(clock.isSearchOver(kStart + seconds(50 + 50)));
  EXPECT_DOUBLE_EQ(clock.secondsLeft(kStart + seconds(90)).value(), 30);
  EXPECT_DOUBLE_EQ(clock.secondsLeft(kStart + seconds(130)).value(), 0);
}

TEST(ClassClockTest, MeasurementsFitInByWhatThoseUntilNowTook) {
  ClassClock clock(kStart, kStart + seconds(100), std::nullopt);
  EXPECT_TRUE(clock.isTimeFor(1000, kStart)) << "nothing is known";
  clock.addMeasurement(seconds(1));
  clock.addMeasurement(seconds(3));
  EXPECT_TRUE(clock.isTimeFor(10, kStart + seconds(80)));
  EXPECT_FALSE(clock.isTimeFor(11, kStart + seconds(80)));
}

TEST(ClassClockTest, WithoutADeadlineThereIsTimeForEverything) {
  ClassClock clock(kStart, std::nullopt, std::nullopt);
  clock.addMeasurement(seconds(100));
  const ClassClock::Time late = kStart + seconds(1'000'000);
  EXPECT_FALSE(clock.isSearchOver(late));
  EXPECT_FALSE(clock.isOver(late));
  EXPECT_TRUE(clock.isTimeFor(1000, late));
  EXPECT_FALSE(clock.secondsLeft(late));
  EXPECT_DOUBLE_EQ(clock.secondsTaken(late), 1e6);
}

} // namespace
} // namespace deft::session
