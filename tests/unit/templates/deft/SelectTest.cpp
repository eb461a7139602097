#include "tests/device/Words.h"

#include "deft/select.cuh"
#include "deft/select/block_alone.cuh"
#include "deft/select/block_cluster.cuh"
#include "deft/select/key.cuh"
#include "tests/device/RandomItem.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace deft::select {
namespace {

using test::draw;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Groups and lists of a query; page size; keys that fit into shared memory.
template <int kG, int kL, int kPage, int kRoom, class PeersOfList = BlockAlone> struct Config {
  using Peers = PeersOfList;
  static constexpr int kGroups = kG, kLists = kL, kPageSize = kPage, kThreads = 128, kCachedKeys = kRoom;
};

enum Values {
  kRandom,
  kFewValues,
  kAllEqual,
  kWithNan,
  kWithInfinities,
  kWithHidden,
  kMostlyHidden,
  kTiny,
  kHuge,
  kLast
};

float drawScore(std::mt19937 &random, Values values) {
  std::normal_distribution<float> normal(0, 3);
  const unsigned die = static_cast<unsigned>(random() % 8);
  switch (values) {
  case kFewValues:
    return static_cast<float>(random() % 3) - 1.f;
  case kAllEqual:
    return -0.75f;
  case kWithNan:
    return die < 3 ? kNan : normal(random);
  case kWithInfinities:
    return die == 0 ? kInf : die == 1 ? -std::numeric_limits<float>::max() : normal(random);
  case kWithHidden:
    return die < 2 ? -kInf : normal(random);
  case kMostlyHidden:
    return die < 7 ? -kInf : normal(random);
  case kTiny:
    return normal(random) * 0x1p-9f;
  case kHuge:
    return normal(random) * 0x1p9f;
  default:
    return normal(random);
  }
}

/// A query's path: stretches with gaps between, whose tokens are hidden.
struct Path {
  std::vector<abi::PathStretch> stretches;
  std::vector<char> isThere; ///< of each position

  Path(std::mt19937 &random, int length, int most) {
    for (int position = 0; position < length;) {
      const int tokens = std::min(draw(random, 1, most), length - position);
      const int location = draw(random, 0, 3000);
      stretches.push_back({position, tokens, location, static_cast<int>(stretches.size())});
      isThere.insert(isThere.end(), static_cast<std::size_t>(tokens), 1);
      position += tokens;
      if (random() % 3 == 0 && position + 5 < length) {
        isThere.insert(isThere.end(), 3, 0);
        position += 3;
      }
    }
  }
  int locationOf(int position) const {
    for (const abi::PathStretch &s : stretches)
      if (position >= s.position && position < s.position + s.tokens)
        return s.location + position - s.position;
    return -1;
  }
};

template <class C>
void expectLists(unsigned seed, Values values, int mostLength, int budget, int first, int last) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", values " + std::to_string(values) + ", budget " +
               std::to_string(budget));
  std::mt19937 random(seed);
  const int queries = draw(random, 1, 3);
  const int stride = (mostLength + 3) / 4 * 4;
  std::vector<Path> paths;
  std::vector<abi::PathStretch> stretches;
  std::vector<int> begin{0}, table;
  for (int i = 0; i < 8000; ++i)
    table.push_back(draw(random, 0, 5000));
  for (int q = 0; q < queries; ++q) {
    const Path &path = paths.emplace_back(random, draw(random, q == 0 ? mostLength : 0, mostLength),
                                          random() % 2 == 0 ? 20 : mostLength);
    stretches.insert(stretches.end(), path.stretches.begin(), path.stretches.end());
    begin.push_back(static_cast<int>(stretches.size()));
  }
  std::vector<uint4> memory(static_cast<std::size_t>(queries * C::kGroups * stride / 4)); // aligned
  auto *worth = reinterpret_cast<unsigned *>(memory.data());
  std::vector<float> scores(memory.size() * 4, -kInf);
  for (int q = 0; q < queries; ++q)
    for (int g = 0; g < C::kGroups; ++g)
      for (std::size_t p = 0; p < paths[static_cast<std::size_t>(q)].isThere.size(); ++p)
        if (paths[static_cast<std::size_t>(q)].isThere[p]) {
          const std::size_t at = static_cast<std::size_t>((q * C::kGroups + g) * stride) + p;
          scores[at] = drawScore(random, values);
          worth[at] = keyOf(scores[at]);
        }
  const auto lists = static_cast<std::size_t>(queries * C::kLists);
  std::vector<int> positions(lists * static_cast<std::size_t>(budget), 777), places(positions),
      counts(lists, 777);
  const abi::SelectArgs args{{worth, stretches.data(), begin.data(), table.data(), positions.data(),
                              places.data(), counts.data(), stride, budget},
                             queries,
                             first,
                             last};
  constexpr unsigned kBlocks = C::Peers::kBlocks;
  const auto blocks = static_cast<unsigned>(lists) * kBlocks;
  for (unsigned block = 0; block < blocks; block += kBlocks)
    ASSERT_EQ(test::runCluster({.threads = C::kThreads,
                                .block = block,
                                .blocks = blocks,
                                .sharedBytes = static_cast<unsigned>(Select<C>::kSmemBytes),
                                .seed = seed},
                               kBlocks, [&] { Select<C>::run(args); }),
              "");
  EXPECT_TRUE(std::all_of(worth, worth + memory.size() * 4, [](unsigned key) { return key == 0; }))
      << "the worth is left as it was before";

  constexpr int kMerged = C::kGroups / C::kLists;
  for (int q = 0; q < queries; ++q)
    for (int l = 0; l < C::kLists; ++l) {
      const Path &path = paths[static_cast<std::size_t>(q)];
      const int length = static_cast<int>(path.isThere.size());
      std::vector<std::pair<float, int>> order; // what is worth most first
      for (int p = 0; p < length; ++p) {
        float most = -kInf;
        for (int m = 0; m < kMerged; ++m) {
          const float s = scores[static_cast<std::size_t>((q * C::kGroups + l * kMerged + m) * stride + p)];
          most = std::max(most, s == s ? s : -std::numeric_limits<float>::max());
        }
        const bool isKept = p < first || p >= length - last;
        if (most > -kInf)
          order.emplace_back(isKept ? kNan : most, p);
      }
      std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
        const bool aKept = a.first != a.first, bKept = b.first != b.first;
        if (aKept != bKept || aKept)
          return aKept != bKept ? aKept : a.second < b.second;
        return a.first != b.first ? a.first > b.first : a.second < b.second;
      });
      order.resize(std::min(order.size(), static_cast<std::size_t>(budget)));
      std::vector<int> expected, expectedPlaces;
      for (const auto &[value, p] : order)
        expected.push_back(p);
      std::sort(expected.begin(), expected.end());
      const auto list = static_cast<std::size_t>(q * C::kLists + l);
      EXPECT_EQ(counts[list], static_cast<int>(expected.size()));
      for (int p : expected) {
        const int location = path.locationOf(p);
        expectedPlaces.push_back(C::kPageSize == 0
                                     ? location
                                     : table[static_cast<std::size_t>(location / std::max(C::kPageSize, 1))] *
                                               C::kPageSize +
                                           location % std::max(C::kPageSize, 1));
      }
      expected.resize(static_cast<std::size_t>(budget), -1);
      expectedPlaces.resize(static_cast<std::size_t>(budget), 0);
      const auto from = static_cast<std::ptrdiff_t>(list) * budget;
      EXPECT_EQ(std::vector(positions.begin() + from, positions.begin() + from + budget), expected);
      EXPECT_EQ(std::vector(places.begin() + from, places.begin() + from + budget), expectedPlaces);
    }
}

template <class C> void expectAllKinds(unsigned seed, int mostLength) {
  for (int values = 0; values < kLast; ++values)
    for (const int budget : {1, 16, mostLength / 3 + 1, mostLength, 2 * mostLength})
      expectLists<C>(seed++, static_cast<Values>(values), mostLength, budget, budget >= 16 ? 4 : 0,
                     budget >= 16 ? 9 : 1);
}

TEST(SelectTest, ChoosesWhatAStableSortPutsFirst) { expectAllKinds<Config<2, 2, 16, 1024>>(1, 700); }

TEST(SelectTest, ReadsTheWorthAgainWhereItDoesNotFit) { expectAllKinds<Config<2, 2, 0, 128>>(1000, 700); }

TEST(SelectTest, BlocksOfAClusterHaveAPartOfThePathEach) {
  for (const int budget : {16, 300, 1400})
    for (const Values values : {kRandom, kAllEqual, kMostlyHidden, kTiny, kHuge}) {
      expectLists<Config<2, 2, 16, 1024, BlockCluster<2>>>(5000, values, 700, budget, 4, 9);
      expectLists<Config<2, 1, 1, 128, BlockCluster<4>>>(6000, values, 900, budget, 4, 9);
    }
}

TEST(SelectTest, AListOfAllHeadsHasTheLargestWorthOfAny) {
  expectAllKinds<Config<4, 1, 1, 1024>>(2000, 300);
  expectAllKinds<Config<4, 2, 1, 128>>(3000, 300);
}

TEST(SelectTest, ShortPathsAndNoneAreChosenAsAWhole) {
  for (const int length : {0, 1, 3, 4, 5, 31, 32, 33, 129})
    expectLists<Config<1, 1, 16, 1024>>(4000 + static_cast<unsigned>(length), kRandom, length, 64, 4, 9);
}

TEST(SelectTest, ScoresThatDifferInTheirLastBitsAreToldApart) {
  std::mt19937 random(7);
  using C = Config<1, 1, 0, 1024>;
  constexpr int kLength = 600, kBudget = 123;
  std::vector<uint4> memory(kLength / 4);
  auto *worth = reinterpret_cast<unsigned *>(memory.data());
  std::vector<int> order(kLength);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (int p = 0; p < kLength; ++p)
    worth[p] = keyOf(1.f) + static_cast<unsigned>(order[static_cast<std::size_t>(p)]);
  const abi::PathStretch stretch{0, kLength, 0, 0};
  const int begin[] = {0, 1};
  std::vector<int> positions(kBudget), places(kBudget), counts(1);
  const abi::SelectArgs args{
      {worth, &stretch, begin, nullptr, positions.data(), places.data(), counts.data(), kLength, kBudget},
      1,
      0,
      0};
  ASSERT_EQ(test::runBlock({.threads = C::kThreads, .sharedBytes = Select<C>::kSmemBytes},
                           [&] { Select<C>::run(args); }),
            "");
  std::vector<int> expected;
  for (int p = 0; p < kLength; ++p)
    if (order[static_cast<std::size_t>(p)] >= kLength - kBudget)
      expected.push_back(p);
  EXPECT_EQ(positions, expected);
}

} // namespace
} // namespace deft::select
