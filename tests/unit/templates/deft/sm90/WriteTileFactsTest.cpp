#include "tests/device/Words.h"

#include "deft/sm90/write_tile_facts.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

#include <array>

namespace deft::sm90 {
namespace {

using test::draw;

struct Config : test::LightConfig {
  static constexpr int kKeyDim = 128, kValueDim = 128;
};
struct DealtConfig : Config {
  static constexpr bool kIsDealt = true;
};
/// A slope, and products that are not capped: tiles whose positions rise are told.
struct SlopedVariant : test::PlainVariant {
  static constexpr bool kHasScore = true, kIsCapped = false, kHasOneCap = false, kIsSloped = true;
};

using Tokens = std::array<Token, 64>;

/// Tokens as trees make them: stretches that the same queries see, in order, sometimes all alike.
Tokens randomTokens(std::mt19937 &random) {
  Tokens tokens;
  const int kind = draw(random, 0, 4), change = std::array{1, 5, 16, 64, 200}[static_cast<std::size_t>(kind)];
  int begin = draw(random, 0, 60), end = draw(random, begin + 1, 64), position = draw(random, 0, 999);
  for (int t = 0; t < 64; ++t) {
    if (change == 16 ? t % 16 == 0 : draw(random, 1, change) == 1) {
      begin = draw(random, 0, 60);
      end = draw(random, begin + 1, 64);
      if (draw(random, 0, 1) == 0)
        position = draw(random, 0, 999);
    }
    const bool isNobodys = change < 64 && draw(random, 0, 9) == 0;
    tokens[static_cast<std::size_t>(t)] = {.place = t,
                                           .position = position++,
                                           .depth = draw(random, 0, 5),
                                           .visible = isNobodys ? kNobody
                                                                : static_cast<unsigned>(begin | end << 16)};
  }
  return tokens;
}

/// What is told of tokens [begin, end), counted for each query.
void expectViewed(const Viewed &viewed, const Tokens &tokens, int begin, int end, const std::string &what) {
  int first = 0xffff, last = 0;
  for (int query = 0; query < 64; ++query) {
    bool any = false, all = true;
    for (int t = begin; t < end; ++t) {
      const unsigned visible = tokens[static_cast<std::size_t>(t)].visible;
      const bool sees =
          query >= static_cast<int>(visible & 0xffff) && query < static_cast<int>(visible >> 16);
      any |= sees;
      all &= sees;
    }
    if (any) {
      first = std::min(first, query);
      last = query + 1;
    }
    EXPECT_EQ(viewed.isWhole(query, query + 1), all) << what << " query " << query;
  }
  EXPECT_EQ(viewed.anyone, static_cast<unsigned>(first | last << 16)) << what;
}

template <class C, class Variant> void tell(unsigned seed, bool isDealt) {
  std::mt19937 random(seed);
  const Tokens tokens = randomTokens(random);
  const bool isGathered = draw(random, 0, 1) == 1;
  const TokenBounds bounds{1, 2, 3, 4};
  TileSlot slot{};
  ASSERT_EQ(test::runBlock({.seed = seed},
                           [&] {
                             const int lane = static_cast<int>(threadIdx.x);
                             const Token own[2] = {tokens[threadIdx.x], tokens[threadIdx.x + 32]};
                             writeTileFacts<C, Variant>(slot, own, bounds, isGathered, isDealt, lane);
                           }),
            "");
  const std::string seedText = "seed " + std::to_string(seed);
  expectViewed(slot.facts.head.viewed, tokens, 0, 64, seedText + " tile");
  for (int g = 0; g < 4; ++g)
    expectViewed(slot.facts.group[g], tokens, g * 16, g * 16 + 16, seedText + " group " + std::to_string(g));
  bool rises = true;
  for (int t = 0; t < 64; ++t) {
    const Token &token = tokens[static_cast<std::size_t>(t)];
    rises &= token.position == tokens[0].position + t;
    EXPECT_EQ(slot.visible[t], token.visible) << seedText;
    if (kHasPositions<C, Variant>) {
      EXPECT_EQ(slot.position[t], token.position) << seedText;
      EXPECT_EQ(slot.depth[t], token.depth) << seedText;
    }
  }
  EXPECT_EQ(slot.facts.head.isGathered, isGathered);
  using Head = TileFacts::Head;
  const bool tellsRising = WarpRows<C, Variant>::kRises;
  EXPECT_EQ(slot.facts.head.kind, kDeals<C> && isDealt   ? Head::kDealt
                                  : tellsRising && rises ? Head::kRising
                                                         : Head::kOther)
      << seedText;
  if (Variant::kHasMask) {
    EXPECT_EQ(slot.facts.bounds.kvHi, 2);
  }
}

TEST(WriteTileFactsTest, WhoSeesAnyAndAllIsCounted) {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    tell<Config, test::PlainVariant>(seed, false);
    tell<Config, test::WindowVariant>(seed, false);
    tell<Config, SlopedVariant>(seed, false);
    tell<DealtConfig, test::PlainVariant>(seed, seed % 2 == 0);
    tell<DealtConfig, test::WindowVariant>(seed, true);
  }
}

} // namespace
} // namespace deft::sm90
