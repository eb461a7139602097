#include "runtime/tree/BranchController.h"

#include "runtime/tree/TreeFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace deft::tree {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Actions = std::vector<BranchAction>;
using Kind = BranchAction::Kind;

BranchController make(BranchPolicy policy, std::int64_t pages = 1000) {
  return BranchController::make({.pageSize = 16, .pages = pages}, std::move(policy)).value();
}

/// A policy from the actions of some steps.
BranchPolicy script(std::vector<BranchEvent> events) { return playScript(std::move(events)); }

TEST(BranchControllerTest, BranchesGrowByATokenAStep) {
  BranchController controller = make(script({}));
  EXPECT_EQ(controller.addPrompt(40, 3).value(), 0);
  for (int step = 1; step <= 5; ++step) {
    ASSERT_TRUE(*controller.step());
    EXPECT_EQ(controller.stepNumber(), step);
    EXPECT_THAT(controller.active(), ElementsAre(0, 1, 2));
    const KvTree &tree = controller.sequences().tree();
    ASSERT_EQ(tree.queries().size(), 3u);
    for (const Query &query : tree.queries())
      EXPECT_EQ(tree.pathTokens(query), 40 + step);
  }
}

/// DeFT's example: every branch forks in two, every three steps.
TEST(BranchControllerTest, AFunctionOfTheUserDecides) {
  BranchController controller = make([](const BranchController &state) -> support::Result<Actions> {
    Actions actions;
    if (state.stepNumber() % 3 == 1 && state.stepNumber() > 1)
      for (std::size_t i = 0; i < state.branches().size(); ++i)
        if (state.branches()[i].state == BranchState::Active)
          actions.push_back({static_cast<int>(i), Kind::Fork, 2});
    return actions;
  });
  (void)controller.addPrompt(10).value();
  for (int step = 1; step <= 9; ++step) {
    ASSERT_TRUE(*controller.step());
    EXPECT_EQ(controller.active().size(), step <= 3 ? 1u : step <= 6 ? 2u : 4u);
    for (const Query &query : controller.sequences().tree().queries())
      EXPECT_EQ(controller.sequences().tree().pathTokens(query), 10 + step);
  }
  EXPECT_EQ(controller.sequences().tree().tokens(), 10 + 3 + 2 * 3 + 4 * 3);
  EXPECT_EQ(controller.events().size(), 3u);
}

TEST(BranchControllerTest, PolicyReadsTheTokensThatWereSampled) {
  constexpr int kEnd = 7;
  BranchController controller = make([](const BranchController &state) -> support::Result<Actions> {
    Actions actions;
    for (int branch : std::vector<int>{0, 1})
      if (state.branches()[branch].state == BranchState::Active && !state.branches()[branch].tokens.empty() &&
          state.branches()[branch].tokens.back() == kEnd)
        actions.push_back({branch, Kind::Finish});
    return actions;
  });
  (void)controller.addPrompt(5, 2).value();
  ASSERT_TRUE(*controller.step());
  ASSERT_TRUE(controller.record(std::vector<int>{1, 2}));
  ASSERT_TRUE(*controller.step());
  ASSERT_TRUE(controller.record(std::vector<int>{kEnd, 3}));
  ASSERT_TRUE(*controller.step());
  EXPECT_THAT(controller.active(), ElementsAre(1));
  EXPECT_FALSE(controller.record(std::vector<int>{1, 2}));
  ASSERT_TRUE(controller.record(std::vector<int>{kEnd}));
  EXPECT_FALSE(*controller.step());
  EXPECT_THAT(controller.text(0), ElementsAre(1, kEnd));
  EXPECT_THAT(controller.text(1), ElementsAre(2, 3, kEnd));
}

TEST(BranchControllerTest, TextGoesThroughForks) {
  BranchController controller = make(script({{2, {0, Kind::Fork, 2}}}));
  (void)controller.addPrompt(5).value();
  (void)controller.step().value();
  ASSERT_TRUE(controller.record(std::vector<int>{1}));
  (void)controller.step().value();
  ASSERT_TRUE(controller.record(std::vector<int>{2, 3}));
  EXPECT_THAT(controller.text(1), ElementsAre(1, 2));
  EXPECT_THAT(controller.text(2), ElementsAre(1, 3));
}

TEST(BranchControllerTest, PruningGivesBackWhatOnlyThatBranchRead) {
  BranchController controller =
      make(script({{3, {0, Kind::Fork, 2}}, {5, {1, Kind::Prune}}, {6, {2, Kind::Prune}}}));
  (void)controller.addPrompt(16).value();
  for (int step = 1; step <= 4; ++step)
    ASSERT_TRUE(*controller.step());
  EXPECT_EQ(controller.sequences().pool().usedPages(), 4);
  ASSERT_TRUE(*controller.step());
  EXPECT_EQ(controller.sequences().pool().usedPages(), 3);
  EXPECT_EQ(controller.branches()[0].state, BranchState::Forked);
  EXPECT_FALSE(*controller.step());
  EXPECT_EQ(controller.sequences().pool().usedPages(), 0); // the last branch takes the prompt with it
  EXPECT_EQ(controller.branches()[0].state, BranchState::Pruned);
}

/// A tree of thoughts: one of three is accepted, and goes on as three.
TEST(BranchControllerTest, AcceptedBranchesOustThoseBesideThem) {
  BranchController controller = make(script(
      {{4, {1, Kind::Accept}}, {4, {1, Kind::Fork, 3}}, {7, {4, Kind::Accept}}, {7, {5, Kind::Accept}}}));
  (void)controller.addPrompt(20, 3).value();
  const int other = controller.addPrompt(9).value(); // of another prompt: not beside them
  EXPECT_EQ(other, 3);
  for (int step = 1; step <= 4; ++step)
    ASSERT_TRUE(*controller.step());
  EXPECT_THAT(controller.active(), ElementsAre(3, 4, 5, 6));
  for (int step = 5; step <= 7; ++step)
    ASSERT_TRUE(*controller.step());
  EXPECT_THAT(controller.active(), ElementsAre(3, 4, 5));
  EXPECT_EQ(describeBranches(controller),
            "branch 0: from a prompt, steps 1 to 3, pruned at step 4\n"
            "branch 1: from a prompt, steps 1 to 3, forked at step 4 into 4, 5, 6\n"
            "branch 2: from a prompt, steps 1 to 3, pruned at step 4\n"
            "branch 3: from a prompt, steps 1 to 7, active\n"
            "branch 4: from branch 1, steps 4 to 7, active\n"
            "branch 5: from branch 1, steps 4 to 7, active\n"
            "branch 6: from branch 1, steps 4 to 6, pruned at step 7\n");
}

TEST(BranchControllerTest, WrongActionsAreErrorsThatNameTheStep) {
  const std::pair<BranchAction, const char *> cases[] = {
      {{9, Kind::Fork, 2}, "there is no branch 9 at step 2, only 2 branches"},
      {{-1, Kind::Prune}, "there is no branch -1 at step 2, only 2 branches"},
      {{0, Kind::Fork, 0}, "branch 0 cannot fork into 0 branches"},
  };
  for (const auto &[action, message] : cases) {
    BranchController controller = make(script({{2, action}}));
    (void)controller.addPrompt(5, 2).value();
    (void)controller.step().value();
    const auto step = controller.step();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().message, message);
    EXPECT_EQ(controller.stepNumber(), 1);
    EXPECT_EQ(controller.active().size(), 2u); // those of step 1
  }
  BranchController controller = make(script({{2, {0, Kind::Prune}}, {2, {0, Kind::Fork, 2}}}));
  (void)controller.addPrompt(5, 2).value();
  (void)controller.step().value();
  EXPECT_EQ(controller.step().error().message, "branch 0 at step 2 was pruned");
}

TEST(BranchControllerTest, AnErrorOfThePolicyEndsTheStep) {
  bool fails = true;
  BranchController controller = make([&](const BranchController &) -> support::Result<Actions> {
    if (fails)
      return support::Error{support::ErrorCode::Diagnostics, "no idea", ""};
    return Actions();
  });
  (void)controller.addPrompt(5).value();
  EXPECT_EQ(controller.step().error().message, "no idea");
  EXPECT_EQ(controller.stepNumber(), 0);
  fails = false;
  EXPECT_TRUE(*controller.step());
}

/// All that can be seen of a controller.
std::string stateOf(const BranchController &controller) {
  std::string state = formatTree(controller.sequences().tree()) + describeBranches(controller) +
                      formatScript(controller.events()) + std::to_string(controller.stepNumber());
  for (const std::vector<int> *values : {&controller.active(), &controller.sequences().pool().pageTable()})
    for (int value : *values)
      state += " " + std::to_string(value);
  return state + " " + std::to_string(controller.sequences().pool().usedPages());
}

TEST(BranchControllerTest, AStepWithoutSpaceChangesNothingAndCanBeTriedAgain) {
  bool prunes = false;
  BranchController controller = make(
      [&](const BranchController &) -> support::Result<Actions> {
        return prunes ? Actions{{3, Kind::Prune}} : Actions{};
      },
      5); // 2 pages of prompt, 3 for 4 branches
  (void)controller.addPrompt(32, 4).value();
  const std::string before = stateOf(controller);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto step = controller.step();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().message, "out of space: 1 page of 16 tokens needed, 0 of 5 free");
    EXPECT_EQ(stateOf(controller), before);
    EXPECT_TRUE(controller.sequences().pool().verify());
  }
  prunes = true;
  EXPECT_TRUE(*controller.step());
  EXPECT_EQ(controller.stepNumber(), 1);
  EXPECT_EQ(controller.sequences().tree().tokens(), 32 + 3);
}

/// Every action of a step is undone when a later one, or the growth behind them, fails.
TEST(BranchControllerTest, FailedStepsLeaveEverythingAsItWas) {
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int pageSize = seed % 3 == 0 ? 0 : 4;
    BranchController controller =
        BranchController::make({.pageSize = pageSize, .pages = pageSize == 0 ? 90 : 30},
                               [&](const BranchController &state) -> support::Result<Actions> {
                                 Actions actions;
                                 const int count = static_cast<int>(state.branches().size());
                                 for (int i = 0; i < static_cast<int>(random() % 4); ++i)
                                   actions.push_back(
                                       {static_cast<int>(random() % static_cast<std::uint64_t>(count)),
                                        static_cast<Kind>(random() % 4), static_cast<int>(random() % 3)});
                                 if (random() % 10 == 0)
                                   return support::Error{support::ErrorCode::Diagnostics, "no idea", ""};
                                 return actions;
                               })
            .value();
    ASSERT_TRUE(controller.addPrompt(20, 3));
    for (int step = 0; step < 40; ++step) {
      const std::string before = stateOf(controller);
      const auto stepped = controller.step();
      ASSERT_TRUE(controller.sequences().pool().verify());
      if (!stepped) {
        ++failed;
        ASSERT_EQ(stateOf(controller), before) << stepped.error().message;
      }
    }
  }
  EXPECT_GT(failed, 1000);
}

TEST(BranchControllerTest, TheRecordOfARunIsAScriptThatRepeatsIt) {
  std::size_t eventCount = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    BranchController controller = make([&](const BranchController &state) -> support::Result<Actions> {
      Actions actions;
      for (std::size_t i = 0; i < state.branches().size(); ++i)
        if (state.branches()[i].state == BranchState::Active)
          switch (random() % 12) {
          case 0:
            if (state.branches().size() < 60)
              actions.push_back({static_cast<int>(i), Kind::Fork, 1 + static_cast<int>(random() % 3)});
            break;
          case 1:
            if (i % 4 != 0)
              actions.push_back({static_cast<int>(i), Kind::Prune});
            break;
          case 2:
            if (i % 8 == 5)
              actions.push_back({static_cast<int>(i), Kind::Finish});
          }
      return actions;
    });
    (void)controller.addPrompt(30, 4).value();
    for (int step = 0; step < 60 && *controller.step(); ++step)
      ASSERT_TRUE(controller.sequences().pool().verify());
    eventCount += controller.events().size();

    const std::string text = formatScript(controller.events());
    const auto events = parseScript(text);
    ASSERT_TRUE(events) << events.error().message;
    EXPECT_EQ(*events, controller.events());
    BranchController again = make(playScript(*events));
    (void)again.addPrompt(30, 4).value();
    while (again.stepNumber() < controller.stepNumber())
      ASSERT_TRUE(again.step());
    EXPECT_EQ(describeBranches(again), describeBranches(controller));
    EXPECT_EQ(formatTree(again.sequences().tree()), formatTree(controller.sequences().tree()));
  }
  EXPECT_GT(eventCount, 200u);
}

TEST(BranchControllerTest, ScriptsAreReadStrictly) {
  const auto script = [](const std::string &events) {
    return R"({"format":"deftc-branches","version":1,"events":[)" + events + "]}";
  };
  EXPECT_TRUE(parseScript(script(""))->empty());
  const std::pair<std::string, const char *> cases[] = {
      {"{}", "not a script of branches"},
      {R"({"format":"deftc-branches","version":2,"events":[]})",
       "script version 2, this program reads version 1"},
      {R"({"format":"deftc-branches","version":1,"events":{}})", "events must be an array, is object"},
      {script(R"({"step":1,"branch":0})"), "events[0] lacks `action`"},
      {script(R"({"step":0,"branch":0,"action":"prune"})"), "events[0].step is 0, must be at least 1"},
      {script(R"({"step":1,"branch":0,"action":"prun"})"),
       "events[0].action is `prun`, must be fork, prune, accept or finish"},
      {script(R"({"step":1,"branch":0,"action":"fork"})"), "events[0] lacks `count`"},
      {script(R"({"step":1,"branch":0,"action":"accept","count":2})"),
       "events[0] has a `count`, but does not fork"},
      {script(R"({"step":1,"branch":0.5,"action":"accept"})"), "events[0].branch must be an integer, is 0.5"},
  };
  for (const auto &[text, message] : cases) {
    const auto events = parseScript(text);
    ASSERT_FALSE(events) << text;
    EXPECT_EQ(events.error().message, message);
  }
}

} // namespace
} // namespace deft::tree
