#include "tuner/sparse/SparseSearch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace deft::sparse {
namespace {

/// Times by a formula, with noise.
class FormulaMachine : public SparseMachine {
public:
  using Formula = std::function<double(const Lists &, std::size_t tile, int itemTokens)>;

  FormulaMachine(std::size_t tiles, std::vector<int> cuts, Formula formula, double noise = 0.005)
      : cuts_(std::move(cuts)), formula_(std::move(formula)), noise_(0, noise) {
    for (std::size_t i = 0; i < tiles; ++i)
      tiles_.push_back({"sparse", -1, config::Family::Sm80, 16, 16 << (i % 4), 2, 4});
  }

  const std::vector<config::PhaseConfig> &tiles() const override { return tiles_; }
  support::Result<void> open(const Lists &lists) override {
    now_ = lists;
    return {};
  }
  support::Result<std::vector<int>> cuts(std::size_t) override { return cuts_; }
  support::Result<double> time(std::size_t tile, int itemTokens) override {
    ++asked;
    if (asked == failsAt)
      return support::Error{support::ErrorCode::Environment, "the device is gone", ""};
    ++times[{tile, itemTokens}];
    return formula_(now_, tile, itemTokens) * std::exp(noise_(random_));
  }

  int asked = 0, failsAt = 0;
  std::map<std::pair<std::size_t, int>, int> times; ///< how often each was timed

private:
  std::vector<config::PhaseConfig> tiles_;
  std::vector<int> cuts_;
  Formula formula_;
  std::mt19937 random_{1};
  std::normal_distribution<> noise_;
  Lists now_;
};

const std::vector<Lists> kSome = {{4096, 1}, {1024, 1}, {4096, 8}, {1024, 8}, {4096, 6}};

SearchResult found(FormulaMachine &machine, const SearchOptions &options = {kSome, {}, {}, {}}) {
  auto result = search(machine, options);
  EXPECT_TRUE(result.ok());
  return result ? *result : SearchResult{};
}

TEST(SparseSearchTest, TheFastestTileOfAllListsAndTheFastestCutOfEachAreFound) {
  FormulaMachine machine(8, {64, 128, 256, 512}, [](const Lists &lists, std::size_t tile, int itemTokens) {
    const int best = lists.queries == 1 ? 128 : 64; // the rule's for all but one query
    return (tile == 5 ? 9 : 10) * (itemTokens == best ? 1 : 1.1);
  });
  const SearchResult result = found(machine);
  EXPECT_TRUE(result.isComplete);
  EXPECT_EQ(result.tile, 5u);
  EXPECT_NEAR(result.tileGain, 10.0 / 9, 0.02);
  ASSERT_EQ(result.lists.size(), kSome.size());
  for (std::size_t i = 0; i < kSome.size(); ++i) {
    const TunedLists &one = result.lists[i];
    EXPECT_EQ(one.lists, kSome[i]);
    EXPECT_EQ(one.cutUntuned, 64);
    EXPECT_EQ(one.itemTokens, kSome[i].queries == 1 ? 128 : 0);
    EXPECT_NEAR(one.tunedUs, 9, 0.2);
    EXPECT_NEAR(one.untunedUs, kSome[i].queries == 1 ? 11 : 10, 0.2);
    EXPECT_GT(one.spread, 0);
  }
}

TEST(SparseSearchTest, WhatIsWithinNoiseKeepsTheRule) {
  for (const double noise : {0.0, 0.01, 0.02}) {
    FormulaMachine machine(
        8, {64, 128, 256, 512},
        [](const Lists &, std::size_t tile, int itemTokens) {
          return 10 * (tile == 3 ? 0.995 : 1) * (itemTokens == 256 ? 0.995 : 1);
        },
        noise);
    const SearchResult result = found(machine);
    int kept = 0;
    for (const TunedLists &one : result.lists)
      kept += one.itemTokens == 0;
    EXPECT_GE(kept, 4) << noise;
    if (noise < 0.02) {
      EXPECT_EQ(result.tile, 0u);
      EXPECT_EQ(kept, 5);
      EXPECT_EQ(result.tileGain, 1);
    }
  }
}

TEST(SparseSearchTest, OnlyTheTilesThatDoBestAreTimedWithAllCuts) {
  FormulaMachine machine(8, {64, 128, 256}, [](const Lists &, std::size_t tile, int) {
    return 10.0 + static_cast<double>(tile);
  });
  found(machine);
  for (std::size_t tile = 0; tile < 8; ++tile)
    EXPECT_EQ(machine.times.contains({tile, 128}), tile < 4) << tile;
  EXPECT_GT((machine.times[{7, 64}]), 0); // by the rule's cut it was looked at
}

TEST(SparseSearchTest, WithATileThatWasChosenBeforeOnlyItsCutsAreAsked) {
  const auto formula = [](const Lists &, std::size_t tile, int itemTokens) {
    return (tile == 1 ? 10.0 : 12.0) * (tile == 2 && itemTokens == 128 ? 0.9 : 1);
  };
  FormulaMachine machine(3, {64, 128}, formula);
  SearchResult result = found(machine, {kSome, 2, {}, {}});
  EXPECT_EQ(result.tile, 2u);
  EXPECT_FALSE(machine.times.contains({1, 64}));
  EXPECT_EQ(result.lists[0].itemTokens, 128);
  FormulaMachine again(3, {64, 128}, formula);
  result = found(again, {kSome, 0, {}, {}});
  EXPECT_EQ(result.tile, 0u);
  EXPECT_FALSE(again.times.contains({2, 64}));
}

TEST(SparseSearchTest, WhatIsDoneStaysWhenItIsOver) {
  const auto formula = [](const Lists &, std::size_t tile, int itemTokens) {
    return (tile == 1 ? 9.0 : 10.0) * (itemTokens == 128 ? 0.9 : 1);
  };
  std::size_t most = 0;
  for (int limit = 0; limit < 500; limit += 23) {
    FormulaMachine machine(2, {64, 128}, formula);
    const SearchResult result = found(machine, {kSome, {}, [&] { return machine.asked >= limit; }, {}});
    EXPECT_LE(machine.asked, limit);
    EXPECT_EQ(result.isComplete, result.lists.size() == kSome.size());
    EXPECT_GE(result.lists.size(), most);
    most = result.lists.size();
    for (const TunedLists &one : result.lists)
      EXPECT_EQ(one.itemTokens, 128);
    EXPECT_EQ(result.tile, result.lists.empty() ? 0u : 1u);
  }
  EXPECT_EQ(most, kSome.size());
}

TEST(SparseSearchTest, AFaultOfTheMachineIsOneOfTheSearch) {
  for (const int at : {1, 20, 100}) {
    FormulaMachine machine(3, {64, 128}, [](const Lists &, std::size_t, int) { return 10.0; });
    machine.failsAt = at;
    const auto result = search(machine, {kSome, {}, {}, {}});
    ASSERT_FALSE(result) << at;
    EXPECT_EQ(result.error().message, "the device is gone");
  }
}

TEST(SparseSearchTest, ProgressSaysOnWhichLists) {
  FormulaMachine machine(2, {64, 128}, [](const Lists &, std::size_t, int) { return 10.0; });
  std::vector<Status> told;
  found(machine, {{{1024, 1}, {1024, 3}}, {}, {}, [&](const Status &status) { told.push_back(status); }});
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().text, "budget 1024, 1 query: which of 2 tiles");
  EXPECT_EQ(told.front().done, 0);
  EXPECT_EQ(told.front().left, 2);
  EXPECT_EQ(told.back().text, "budget 1024, 3 queries: the best of each tile");
  EXPECT_EQ(told.back().done, 1);
  EXPECT_EQ(told.back().left, 1);
}

} // namespace
} // namespace deft::sparse
