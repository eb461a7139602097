#include "tests/device/Words.h"

#include "deft/unite_given.cuh"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace deft::select {
namespace {

using test::draw;

template <int kTable, int kListedAtMost> struct Config {
  static constexpr int kPlaces = kTable, kMostListed = kListedAtMost;
};

struct Token {
  int slot;
  unsigned readers;
  bool operator==(const Token &) const = default;
};

/// Tokens of a union by the words of its header, from lists of slots and holes.
std::vector<Token> tokensOf(const std::vector<std::vector<int>> &lists) {
  std::vector<Token> tokens;
  std::map<int, std::size_t> at; // of a slot's first token
  for (std::size_t query = 0; query < lists.size(); ++query) {
    std::map<int, int> listed;
    for (const int slot : lists[query]) {
      if (slot < 0)
        continue;
      const unsigned reader = 1u << query;
      if (listed[slot]++ > 0)
        tokens.push_back({slot, reader});
      else if (const auto [known, isNew] = at.try_emplace(slot, tokens.size()); isNew)
        tokens.push_back({slot, reader});
      else
        tokens[known->second].readers |= reader;
    }
  }
  return tokens;
}

/// Lists of slots out of so many, by lot.
template <class C> void expectUnions(unsigned seed, int budget, int mostQueries, int slots) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<abi::Union> unions;
  std::vector<abi::Item> items;
  int queries = draw(random, 0, 2), before = 0; // those before are in none
  for (int left = draw(random, 1, 3); left > 0; --left) {
    const int count = draw(random, 2, mostQueries), parts = draw(random, 1, 20);
    unions.push_back({queries, count, 0, before, static_cast<int>(items.size()), parts});
    items.resize(items.size() + static_cast<std::size_t>(parts));
    queries += count;
    before += count;
  }
  unions.push_back({}); // as in a captured launch
  std::vector<int> caller(static_cast<std::size_t>(queries));
  for (int i = 0; i < queries; ++i)
    caller[static_cast<std::size_t>(i)] = i;
  std::shuffle(caller.begin(), caller.end(), random);
  std::vector<std::vector<int>> lists(static_cast<std::size_t>(queries)); // by callers' indices
  std::vector<int> given;
  for (std::vector<int> &list : lists) {
    const int end = draw(random, 0, 2) == 0 ? draw(random, 0, budget) : budget, hole = draw(random, 1, 9);
    for (int i = 0; i < budget; ++i)
      list.push_back(i < end && draw(random, 0, hole) > 0 ? draw(random, 0, slots - 1) : -1);
    given.insert(given.end(), list.begin(), list.end());
  }
  abi::Selected selected{};
  selected.budget = budget;
  const auto room = static_cast<std::size_t>(before) * static_cast<std::size_t>(budget);
  std::vector<int> places(room, 777), counts(unions.size(), 777);
  std::vector<unsigned> readers(room, 777u);
  const abi::UniteArgs args{
      .selected = &selected,
      .unions = {unions.data(), nullptr, places.data(), readers.data(), counts.data(), caller.data()},
      .pageTable = given.data(),
      .items = items.data()};
  const auto blocks = static_cast<unsigned>(unions.size());
  for (unsigned block = 0; block < blocks; ++block)
    ASSERT_EQ(test::runCluster({.threads = UniteGiven<C>::kThreads,
                                .block = block,
                                .blocks = blocks,
                                .sharedBytes = static_cast<unsigned>(UniteGiven<C>::kSmemBytes),
                                .seed = seed},
                               1, [&] { UniteGiven<C>::run(args); }),
              "");
  for (std::size_t u = 0; u + 1 < unions.size(); ++u) {
    const abi::Union &one = unions[u];
    std::vector<std::vector<int>> own;
    for (int i = 0; i < one.queryCount; ++i)
      own.push_back(lists[static_cast<std::size_t>(caller[static_cast<std::size_t>(one.queryBegin + i)])]);
    const std::vector<Token> expected = tokensOf(own);
    const auto begin = static_cast<std::size_t>(one.before) * static_cast<std::size_t>(budget);
    std::vector<Token> got;
    ASSERT_EQ(counts[u], static_cast<int>(expected.size())) << "union " << u;
    for (std::size_t t = 0; t < expected.size(); ++t)
      got.push_back({places[begin + t], readers[begin + t]});
    // A slot that a list has again stands where that entry does.
    ASSERT_TRUE(got == expected) << "union " << u;
    int next = static_cast<int>(begin);
    for (int i = 0; i < one.parts; ++i) {
      const abi::Item &item = items[static_cast<std::size_t>(one.itemBegin + i)];
      if (item.commonTokens == abi::kNoTokens) {
        ASSERT_EQ(item.tokens, 1);
        continue;
      }
      ASSERT_EQ(item.commonTokens, next);
      ASSERT_TRUE(item.tokens % 64 == 0 || next + item.tokens == static_cast<int>(begin + expected.size()));
      next += item.tokens;
    }
    ASSERT_EQ(next, static_cast<int>(begin + expected.size()));
  }
  EXPECT_EQ(counts.back(), 777) << "what ends the list of unions has no lists";
}

TEST(UniteGivenTest, EachSlotStandsOnceForAllThatListIt) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    expectUnions<Config<4096, 3000>>(seed, 180, 16, 400);
    expectUnions<Config<4096, 3000>>(seed, 700, 4, 100000);
    expectUnions<Config<4096, 3000>>(seed, 1, 16, 3);
  }
}

TEST(UniteGivenTest, ASlotThatAListHasAgainStandsAgain) {
  for (unsigned seed = 0; seed < 6; ++seed)
    expectUnions<Config<4096, 3000>>(seed, 90, 8, 40);
}

TEST(UniteGivenTest, TheTableMayBeNearlyFull) {
  for (unsigned seed = 0; seed < 3; ++seed)
    expectUnions<Config<2051, 2050>>(seed, 1025, 2, 1 << 30);
}

} // namespace
} // namespace deft::select
