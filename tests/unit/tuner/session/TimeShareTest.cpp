#include "tuner/session/TimeShare.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft::session {
namespace {

using enum Waiting::Stands;

TEST(TimeShareTest, NewClassesShareAlikeWhatTheirInputsLeave) {
  const std::vector<Waiting> waiting{{New, 2}, {New, 3}, {New, 5}};
  EXPECT_DOUBLE_EQ(shareOf(waiting, 70), 20);
  EXPECT_DOUBLE_EQ(shareOf(waiting, 4), 0);
}

TEST(TimeShareTest, WhatHasAResultLeavesNewOnesAllTheTime) {
  const std::vector<Waiting> waiting{{New, 1}, {Cut, 4}, {Done, 100}, {Cut, 4}};
  EXPECT_DOUBLE_EQ(shareOf(waiting, 31), 30);
}

TEST(TimeShareTest, ClassesThatWereCutShareTheRest) {
  const std::vector<Waiting> waiting{{Cut, 1}, {Done, 100}, {Cut, 3}, {Done, 100}};
  EXPECT_DOUBLE_EQ(shareOf(waiting, 24), 10);
}

} // namespace
} // namespace deft::session
