#include "tuner/session/TimeShare.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft::session {
namespace {

using enum Standing;

TEST(TimeShareTest, ClassesWithoutAResultHaveTheirTurnFirst) {
  const std::vector<Standing> classes{Done, New, Cut, New};
  EXPECT_EQ(turnsOf(classes), (std::vector{1, 3, 0, 2}));
}

TEST(TimeShareTest, NewClassesShareAlikeWhatTheirInputsLeave) {
  const std::vector<WaitingClass> waiting{{New, 2}, {New, 3}, {New, 5}};
  EXPECT_DOUBLE_EQ(shareOf(waiting, 70), 20);
  EXPECT_DOUBLE_EQ(shareOf(waiting, 4), 0);
}

TEST(TimeShareTest, WhatHasAResultLeavesNewOnesAllTheTime) {
  const std::vector<WaitingClass> waiting{{New, 1}, {Cut, 4}, {Done, 100}, {Cut, 4}};
  EXPECT_DOUBLE_EQ(shareOf(waiting, 31), 30);
}

TEST(TimeShareTest, ClassesThatWereCutShareTheRest) {
  const std::vector<WaitingClass> waiting{{Cut, 1}, {Done, 100}, {Cut, 3}, {Done, 100}};
  EXPECT_DOUBLE_EQ(shareOf(waiting, 24), 10);
}

} // namespace
} // namespace deft::session
