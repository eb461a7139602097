#include "tests/device/Words.h"

#include "deft/sm80/token_cursor.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

namespace deft::sm80 {
namespace {

using test::draw;
using test::ItemToken;

template <int kPage> struct Config : test::Sm80Config {
  static constexpr int kPageSize = kPage;
};

/// Every thread walks an item to the end and a tile further; each token is compared with the one that is
/// counted.
template <int kPage> void walk(unsigned seed) {
  std::mt19937 random(seed);
  const test::TestItem made = test::randomItem(
      random,
      {.queries = draw(random, 1, 200), .runs = draw(random, 1, 60), .mostTokens = draw(random, 1, 90)});
  const std::vector<ItemToken> tokens = made.tokens();
  std::vector<int> pageTable(static_cast<std::size_t>(made.places / std::max(kPage, 1)) + 1);
  for (int &page : pageTable)
    page = draw(random, 0, 4000);
  abi::AttendArgs args{};
  args.runs = made.runs.data();
  args.pageTable = pageTable.data();
  const abi::CachePlaces cache{1'000'003, 1009, 101};
  const int kvHead = draw(random, 0, 7);
  constexpr int kTile = Config<kPage>::kTileKv;
  for (int thread = 0; thread < kTile; ++thread) {
    TokenCursor<Config<kPage>> cursor(args, made.item, thread);
    std::vector<int> space(3 * kTile);
    const TokenRecords records(space.data(), kTile);
    for (int i = thread; i < made.item.tokens + kTile; i += kTile) {
      cursor.fetch(args);
      cursor.record(records, thread);
      const ItemToken &want = tokens[static_cast<std::size_t>(std::min(i, made.item.tokens - 1))];
      const long long row =
          kPage > 0 ? pageTable[static_cast<std::size_t>(want.place / std::max(kPage, 1))] * 1'000'003LL +
                          want.place % std::max(kPage, 1) * 1009LL
                    : want.place * 1009LL;
      ASSERT_EQ(cursor.place(cache, kvHead), static_cast<unsigned>(row + kvHead * 101))
          << "seed " << seed << " token " << i;
      ASSERT_EQ(cursor.slot(), kPage > 0
                                   ? pageTable[static_cast<std::size_t>(want.place / std::max(kPage, 1))] *
                                             std::max(kPage, 1) +
                                         want.place % std::max(kPage, 1)
                                   : want.place)
          << "seed " << seed << " token " << i;
      ASSERT_EQ(records.position[thread], want.position) << "seed " << seed << " token " << i;
      ASSERT_EQ(records.depth[thread], want.depth) << "seed " << seed << " token " << i;
      // Behind the item's end it is the last token once more, and nobody sees it.
      ASSERT_EQ(records.visible[thread], i < made.item.tokens ? want.visible() : 0u)
          << "seed " << seed << " token " << i;
    }
  }
}

TEST(TokenCursorTest, EachThreadMeetsItsTokenOfEachTile) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    walk<0>(seed);
    walk<1>(seed);
    walk<16>(seed);
  }
}

} // namespace
} // namespace deft::sm80
