#include "runtime/plan/RunList.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft::plan {
namespace {

abi::Run run(int tokens) { return {0, tokens, 0, 0, 0, 0, 1, 0, 0}; }

/// Runs of so many tokens each.
std::vector<int> tokensOf(const RunList &runs) {
  std::vector<int> tokens;
  for (const abi::Run &one : runs)
    tokens.push_back(one.tokens);
  return tokens;
}

struct Memory {
  std::shared_ptr<std::vector<abi::Run>> runs = std::make_shared<std::vector<abi::Run>>(4, run(9));
  RunList::Memory lent() const { return {runs, *runs}; }
};

/// As a planner does.
void remake(RunList &runs, const std::vector<int> &tokens) {
  abi::Run *const to = runs.renew(tokens.size() + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    to[i] = run(tokens[i]);
  runs.cutTo(tokens.size());
}

TEST(RunListTest, WhatIsMadeAnewStandsInTheRoomThatIsLent) {
  const Memory memory;
  RunList runs;
  remake(runs, {1, 2});
  EXPECT_EQ(runs.data(), runs.own().data());
  runs.lend(memory.lent());
  EXPECT_EQ(tokensOf(runs), (std::vector{1, 2})); // until they are made anew
  remake(runs, {3, 4, 5});
  EXPECT_EQ(runs.data(), memory.runs->data());
  EXPECT_EQ(tokensOf(runs), (std::vector{3, 4, 5}));
  runs.lend(memory.lent());
  remake(runs, {6, 7, 8, 9}); // and room for one more
  EXPECT_EQ(runs.data(), runs.own().data());
  EXPECT_EQ(memory.runs->front().tokens, 3);
}

TEST(RunListTest, ARoomIsLentOnce) {
  const Memory memory;
  RunList runs;
  runs.lend(memory.lent());
  remake(runs, {1, 2});
  runs.toChange()[0].tokens = 5; // they may be on their way
  EXPECT_EQ(tokensOf(runs), (std::vector{5, 2}));
  remake(runs, {7});
  EXPECT_EQ(runs.data(), runs.own().data());
  EXPECT_EQ(memory.runs->front().tokens, 1);
}

TEST(RunListTest, WhatIsLentIsNeverChanged) {
  const Memory first, second;
  RunList runs;
  runs.lend(first.lent());
  remake(runs, {1, 2, 3});
  runs.lend(second.lent());
  runs.toChange()[1].tokens = 7;
  EXPECT_EQ(runs.data(), second.runs->data());
  EXPECT_EQ(tokensOf(runs), (std::vector{1, 7, 3}));
  EXPECT_EQ(first.runs->at(1).tokens, 2);
  runs.lend({});
  runs.toChange()[1].tokens = 8;
  EXPECT_EQ(tokensOf(runs), (std::vector{1, 8, 3}));
  EXPECT_EQ(second.runs->at(1).tokens, 7);
  EXPECT_EQ(runs.data(), runs.own().data());
}

TEST(RunListTest, WhatIsToChangeMovesIntoTheRoomThatIsLent) {
  const Memory memory;
  RunList runs;
  remake(runs, {1, 2});
  runs.lend(memory.lent());
  runs.toChange()[0].tokens = 5;
  EXPECT_EQ(runs.data(), memory.runs->data());
  EXPECT_EQ(tokensOf(runs), (std::vector{5, 2}));
  runs.lend({});
  remake(runs, {1, 2, 3, 4, 5});
  runs.lend(memory.lent()); // of four
  runs.toChange()[0].tokens = 6;
  EXPECT_EQ(runs.data(), runs.own().data());
  EXPECT_EQ(tokensOf(runs), (std::vector{6, 2, 3, 4, 5}));
}

TEST(RunListTest, ChangesInTheRoomThatIsLentStayThere) {
  const Memory memory;
  RunList runs;
  runs.lend(memory.lent());
  remake(runs, {1, 2});
  runs.lend(memory.lent()); // they were not uploaded
  runs.toChange()[0].tokens = 5;
  EXPECT_EQ(runs.data(), memory.runs->data());
  EXPECT_EQ(tokensOf(runs), (std::vector{5, 2}));
}

TEST(RunListTest, AListThatReplacesAnotherLeavesItTheLoan) {
  const Memory memory;
  RunList best, tried;
  best.lend(memory.lent());
  remake(tried, {1, 2});
  std::swap(best, tried);
  best.swapLoan(tried);
  EXPECT_EQ(tokensOf(best), (std::vector{1, 2}));
  best.toChange()[0].tokens = 5;
  EXPECT_EQ(best.data(), memory.runs->data());
  EXPECT_EQ(tokensOf(best), (std::vector{5, 2}));
  remake(tried, {3});
  EXPECT_EQ(tried.data(), tried.own().data());
}

TEST(RunListTest, ACopyHasMemoryOfItsOwn) {
  Memory memory;
  RunList runs;
  runs.lend(memory.lent());
  remake(runs, {1, 2});
  RunList copy = runs;
  memory.runs->front().tokens = 4;
  EXPECT_EQ(tokensOf(copy), (std::vector{1, 2}));
  EXPECT_EQ(tokensOf(runs), (std::vector{4, 2}));
  const RunList moved = std::move(runs);
  memory.runs.reset(); // whoever stands there keeps it
  EXPECT_EQ(tokensOf(moved), (std::vector{4, 2}));
  copy = moved;
  EXPECT_EQ(tokensOf(copy), (std::vector{4, 2}));
}

} // namespace
} // namespace deft::plan
