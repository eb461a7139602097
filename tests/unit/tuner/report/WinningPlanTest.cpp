#include "tuner/report/WinningPlan.h"

#include "tests/unit/tuner/report/Events.h"
#include "tuner/workload/Workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::report {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kTree[] = "few_shot:prompt=400,branches=4";

std::vector<json> eventsWithATree() {
  std::vector<json> events = sessionEvents();
  const auto workload = workload::make(kTree, 0);
  events[0]["device"] = {{"kind", "gpu"}, {"arch", "sm_90"}, {"name", "A GPU"}, {"units", 132}};
  events[1]["trees"][0] = {{"name", kTree},
                           {"tokens", workload->tree().tokens()},
                           {"queries", workload->tree().queries().size()},
                           {"held_out", false}};
  return events;
}

std::string pictureOf(const std::vector<json> &events) {
  const auto session = sessionOf(events, "a.jsonl");
  EXPECT_TRUE(session);
  return winningPlan(*session, session->classes.front());
}

TEST(WinningPlanTest, TheFirstTreeIsMadeAnewAndCutAsTheWinnerDoes) {
  const std::string picture = pictureOf(eventsWithATree());
  EXPECT_THAT(picture, StartsWith("<svg"));
  EXPECT_THAT(picture, HasSubstr("Partition union"));
  EXPECT_THAT(picture, HasSubstr("5 nodes, 4 queries"));
}

TEST(WinningPlanTest, WhatCannotBeToldIsNotDrawn) {
  auto other = eventsWithATree(); // the generator makes other trees now
  other[1]["trees"][0]["tokens"] = 1;
  EXPECT_EQ(pictureOf(other), "");
  auto file = eventsWithATree();
  file[1]["trees"][0]["name"] = "tree.json";
  EXPECT_EQ(pictureOf(file), "");
  auto masked = eventsWithATree();
  masked[0]["signature"] = "q32-kv8-d128-bf16-p16nhd-0123456789ab";
  EXPECT_EQ(pictureOf(masked), "");
  auto nowhere = eventsWithATree();
  nowhere[0]["device"] = "A GPU";
  EXPECT_EQ(pictureOf(nowhere), "");
  const auto session = *sessionOf(eventsWithATree(), "a.jsonl");
  EXPECT_EQ(winningPlan(session, session.classes.back()), "") << "not done";
}

} // namespace
} // namespace deft::report
