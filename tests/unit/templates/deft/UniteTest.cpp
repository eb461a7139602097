#include "tests/device/Words.h"

#include "deft/select/block_alone.cuh"
#include "deft/select/block_cluster.cuh"
#include "deft/select_abi.h"
#include "deft/unite.cuh"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace deft::select {
namespace {

using test::draw;

template <int kL, int kPage, class PeersOfList = BlockAlone> struct Config {
  using Peers = PeersOfList;
  static constexpr int kKvHeads = 2, kLists = kL, kPageSize = kPage,
                       kWindow = 1024; // a path goes through several
};

/// Unions of queries that share a path's beginning, with random lists, against sets.
template <class C> void expectUnions(unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr int kMostPosition = 3000, kMostLocation = 9000;
  std::vector<int> table;
  for (int i = 0; i < kMostLocation; ++i)
    table.push_back(draw(random, 0, 5000));
  const auto placeOf = [&](int location) {
    constexpr int kPage = std::max(C::kPageSize, 1);
    return C::kPageSize == 0 ? location
                             : table[static_cast<std::size_t>(location / kPage)] * kPage + location % kPage;
  };
  std::vector<abi::Union> unions;
  std::vector<abi::PathStretch> stretches;
  std::vector<int> stretchBegin{0};
  const int budget = draw(random, 1, 400);
  std::vector<int> positions, places, counts; // of lists, by the plan's order: callers' indices are the same
  int queries = draw(random, 0, 2);           // that are in none
  const auto addQuery = [&](int shared, int sharedLocation) {
    const int own = draw(random, 0, 300), ownLocation = draw(random, 4000, 8000);
    if (shared > 0)
      stretches.push_back({0, shared, sharedLocation, 0});
    if (own > 0)
      stretches.push_back({shared, own, ownLocation, 1});
    stretchBegin.push_back(static_cast<int>(stretches.size()));
    for (int list = 0; list < C::kLists; ++list) {
      std::vector<int> chosen;
      const int one = draw(random, 1, 30);
      for (int position = 0; position < shared + own; ++position)
        if (draw(random, 0, one) == 0 && static_cast<int>(chosen.size()) < budget)
          chosen.push_back(position);
      counts.push_back(static_cast<int>(chosen.size()));
      chosen.resize(static_cast<std::size_t>(budget), -1);
      for (const int position : chosen) {
        positions.push_back(position);
        places.push_back(position < 0 ? 0
                                      : placeOf(position < shared ? sharedLocation + position
                                                                  : ownLocation + position - shared));
      }
    }
  };
  for (int i = 0; i < queries; ++i)
    addQuery(0, 0);
  int before = 0;
  for (int left = draw(random, 1, 3); left > 0; --left) {
    const int shared = draw(random, 1, kMostPosition), location = draw(random, 0, 900);
    unions.push_back({queries, draw(random, 2, seed % 3 == 0 ? 32 : 5), shared, before, 0, 0});
    for (int i = 0; i < unions.back().queryCount; ++i)
      addQuery(shared, location);
    queries += unions.back().queryCount;
    before += unions.back().queryCount;
  }
  unions.push_back({}); // as in a captured launch
  std::vector<int> caller(static_cast<std::size_t>(queries));
  for (int i = 0; i < queries; ++i)
    caller[static_cast<std::size_t>(i)] = i;
  abi::Selected selected{};
  selected.stretches = stretches.data();
  selected.stretchBegin = stretchBegin.data();
  selected.positions = positions.data();
  selected.places = places.data();
  selected.counts = counts.data();
  selected.budget = budget;
  const auto room = static_cast<std::size_t>(before * C::kLists * budget);
  std::vector<int> ofPositions(room, 777), ofPlaces(room, 777), ofCounts(unions.size() * C::kLists, 777);
  std::vector<unsigned> readers(room, 777u);
  std::vector<abi::Item> items;
  for (std::size_t u = 0; u + 1 < unions.size(); ++u) {
    unions[u].itemBegin = static_cast<int>(items.size());
    unions[u].parts = draw(random, 1, 20);
    items.resize(items.size() + static_cast<std::size_t>(unions[u].parts * C::kKvHeads));
  }
  const bool areTold = seed % 2 == 0;
  const abi::UniteArgs args{.selected = &selected,
                            .unions = {unions.data(), ofPositions.data(), ofPlaces.data(), readers.data(),
                                       ofCounts.data(), caller.data()},
                            .pageTable = table.data(),
                            .items = areTold ? items.data() : nullptr};
  constexpr unsigned kBlocks = C::Peers::kBlocks;
  const auto blocks = static_cast<unsigned>(unions.size()) * C::kLists * kBlocks;
  for (unsigned block = 0; block < blocks; block += kBlocks)
    ASSERT_EQ(test::runCluster({.threads = Unite<C>::kThreads,
                                .block = block,
                                .blocks = blocks,
                                .sharedBytes = static_cast<unsigned>(Unite<C>::kSmemBytes),
                                .seed = seed},
                               kBlocks, [&] { Unite<C>::run(args); }),
              "");

  for (std::size_t u = 0; u + 1 < unions.size(); ++u)
    for (int list = 0; list < C::kLists; ++list) {
      const abi::Union &one = unions[u];
      struct Token {
        int position, place;
        unsigned readers;
        bool operator==(const Token &) const = default;
      };
      std::map<int, Token> shared;
      std::vector<Token> expected, own;
      for (int i = 0; i < one.queryCount; ++i) {
        const auto from = static_cast<std::size_t>((one.queryBegin + i) * C::kLists + list);
        for (int slot = 0; slot < counts[from]; ++slot) {
          const std::size_t at = from * static_cast<std::size_t>(budget) + static_cast<std::size_t>(slot);
          if (positions[at] < one.sharedEnd) {
            Token &token =
                shared.try_emplace(positions[at], Token{positions[at], places[at], 0u}).first->second;
            token.readers |= 1u << i;
          } else {
            own.push_back({positions[at], places[at], 1u << i});
          }
        }
      }
      for (const auto &[position, token] : shared)
        expected.push_back(token);
      expected.insert(expected.end(), own.begin(), own.end());
      ASSERT_EQ(ofCounts[u * C::kLists + static_cast<std::size_t>(list)], static_cast<int>(expected.size()));
      const auto begin = static_cast<std::size_t>((one.before * C::kLists + list * one.queryCount) * budget);
      for (std::size_t t = 0; t < expected.size(); ++t) {
        const Token got{ofPositions[begin + t], ofPlaces[begin + t], readers[begin + t]};
        ASSERT_EQ(got, expected[t]) << "union " << u << ", list " << list << ", token " << t;
      }
      constexpr int kHeads = C::kKvHeads / C::kLists; // whose items have all of it, in order
      for (int head = list * kHeads; areTold && head < (list + 1) * kHeads; ++head) {
        int next = static_cast<int>(begin);
        for (int i = 0; i < one.parts; ++i) {
          const abi::Item &item = items[static_cast<std::size_t>(one.itemBegin + i * C::kKvHeads + head)];
          if (item.commonTokens == abi::kNoTokens) {
            ASSERT_EQ(item.tokens, 1);
            continue;
          }
          ASSERT_EQ(item.commonTokens, next);
          next += item.tokens;
        }
        ASSERT_EQ(next, static_cast<int>(begin + expected.size()));
      }
    }
  EXPECT_EQ(ofCounts.back(), 777) << "what ends the list of unions has no lists";
}

TEST(UniteTest, BlocksOfAClusterHaveAWindowEach) {
#if defined(__SANITIZE_THREAD__) // which takes lanes for threads, and has at most 8,128 of these
  constexpr int kBlocks = 4;
#else
  constexpr int kBlocks = 8;
#endif
  expectUnions<Config<1, 16, BlockCluster<kBlocks>>>(400);
}

TEST(UniteTest, AUnionHasEachTokenOnceAndSaysWhoReadsIt) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    expectUnions<Config<2, 16>>(seed);
    expectUnions<Config<1, 0>>(100 + seed);
    expectUnions<Config<1, 1>>(200 + seed);
    expectUnions<Config<1, 16, BlockCluster<2>>>(300 + seed);
  }
}

} // namespace
} // namespace deft::select
