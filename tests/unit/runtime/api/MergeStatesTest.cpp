#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace deft {
namespace {

using testing::HasSubstr;

constexpr int kHeads = 4, kKvHeads = 2, kDim = 64, kPageSize = 16, kPages = 8, kQueries = 3;

struct Results {
  std::vector<std::uint16_t> out = std::vector<std::uint16_t>(kQueries * kHeads * kDim);
  std::vector<float> lse = std::vector<float>(kQueries * kHeads);
  State state() const { return {out.data(), lse.data()}; }
};

float value(std::uint16_t bf16) { return std::bit_cast<float>(std::uint32_t{bf16} << 16); }

// A prompt that all queries see and a branch of each, read apart and then together.
TEST(MergeStatesTest, PrefixAndSuffixBecomeTheWholeTree) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::size_t count) {
    std::vector<std::uint16_t> values(count);
    for (std::uint16_t &value : values)
      value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
    return values;
  };
  const auto q = draw(kQueries * kHeads * kDim), k = draw(kPages * kPageSize * kKvHeads * kDim),
             v = draw(k.size());
  const std::vector<int> table = {4, 2, 7, 0, 1, 6, 3, 5};
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  const auto run = [&](const Tree &tree) {
    Results results;
    runtime
        .run(attention, Plan::make(attention, tree).value(),
             {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = table},
             {.out = results.out.data(), .lse = results.lse.data()})
        .value();
    return results;
  };
  Tree whole, prefix, suffix;
  const int prompt = whole.addRoot(40, 0).value(), alone = prefix.addRoot(40, 0).value();
  for (int i = 0; i < kQueries; ++i) {
    const int tokens = 7 * i; // the first branch has none
    (void)whole.addQuery(whole.addChild(prompt, tokens, 48 + 24 * i).value()).value();
    (void)prefix.addQuery(alone).value();
    (void)suffix.addQuery(suffix.addRoot(tokens, 48 + 24 * i).value()).value();
  }
  const Results expected = run(whole), first = run(prefix), second = run(suffix);
  Results merged;
  const State states[] = {first.state(), second.state()};
  const StateShape shape{.rows = kQueries * kHeads, .dim = kDim};
  ASSERT_TRUE(mergeStates(shape, states, {.out = merged.out.data(), .lse = merged.lse.data()}));
  for (std::size_t i = 0; i < merged.out.size(); ++i)
    ASSERT_NEAR(value(merged.out[i]), value(expected.out[i]), 0x1p-6) << i; // of values about 1, in bf16
  for (std::size_t i = 0; i < merged.lse.size(); ++i)
    ASSERT_NEAR(merged.lse[i], expected.lse[i], 1e-4) << i;
}

TEST(MergeStatesTest, WrongCallsAreNamed) {
  Results results;
  const std::vector<State> states(2, results.state());
  const MergedState to{results.out.data(), nullptr};
  const auto error = [](const Result<void> &result) { return result ? "none" : result.error().message; };
  const StateShape shape{.rows = kQueries * kHeads, .dim = kDim};
  EXPECT_EQ(error(mergeStates(shape, states, to)), "none");
  EXPECT_EQ(error(mergeStates(shape, {}, to)), "states are 0, a call merges 1 to 16");
  EXPECT_EQ(error(mergeStates(shape, std::vector<State>(17, states[0]), to)),
            "states are 17, a call merges 1 to 16");
  EXPECT_EQ(error(mergeStates(shape, states, {})), "to.out is null");
  const State halves[] = {states[0], {results.out.data(), nullptr}};
  EXPECT_EQ(error(mergeStates(shape, halves, to)), "states[1].lse is null");
  EXPECT_EQ(error(mergeStates({.rows = -1, .dim = 1}, states, to)),
            "states[0].out does not say how many queries it has");
  EXPECT_EQ(error(mergeStates({.rows = 1, .dim = 0}, states, to)),
            "to.out has 1 rows of 0 elements, there may be 4294967296 of 1 to 1048576");
  EXPECT_THAT(error(mergeStates({.rows = 1, .dim = 1, .type = static_cast<StateType>(9)}, states, to)),
              HasSubstr("it must be float32, float16 or bfloat16"));
  EXPECT_EQ(error(mergeStates({.rows = 0, .dim = 1}, std::vector<State>(2), {})), "none");
}

TEST(MergeStatesTest, WhatIsWrittenMayBeAStateButNoOtherRows) {
  std::vector<float> memory(64, 1.0F);
  const auto at = [&](std::size_t place) { return memory.data() + place; };
  const StateShape shape{.rows = 2, .dim = 4, .type = StateType::F32};
  const State states[] = {{at(0), at(8)}, {at(10), at(18)}};
  const auto merged = [&](std::size_t out, std::size_t lse) {
    const auto result = mergeStates(shape, states, {at(out), at(lse)});
    return result ? "none" : result.error().message;
  };
  EXPECT_EQ(merged(0, 8), "none");
  EXPECT_EQ(merged(10, 8), "none");
  EXPECT_EQ(merged(20, 28), "none");
  EXPECT_EQ(merged(4, 28), "to.out overlaps with lse of state 0");
  EXPECT_EQ(merged(14, 28), "to.out overlaps with lse of state 1");
  EXPECT_EQ(merged(20, 9), "to.lse overlaps with lse of state 0");
  EXPECT_EQ(merged(20, 11), "to.lse overlaps with out of state 1");
  EXPECT_EQ(merged(20, 27), "to.lse overlaps with its out");
  const State apart[] = {{at(0), at(40)}, {at(16), at(48)}};
  const auto shifted = mergeStates(shape, apart, {at(4), at(56)});
  ASSERT_FALSE(shifted);
  EXPECT_EQ(shifted.error().message, "to.out overlaps with out of state 0");
  EXPECT_EQ(shifted.error().hint, "it may be all of a state's own out, or has memory of its own");
}

} // namespace
} // namespace deft
