#include "tests/device/Words.h"

#include "deft/common/warp_rows.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deft {
namespace {

using test::runBlock;

struct Config : test::DeviceConfig {
  static constexpr int kRatio = 4;
};
constexpr int kTokens = 64;

/// What is true of rows and tokens, and the same as device code has it.
struct Scene {
  std::mt19937 random;
  int queries, window;
  std::vector<int> queryPos, caller;
  std::vector<unsigned> records = std::vector<unsigned>(3 * kTokens);
  abi::AttendArgs args{};
  abi::Item item{};

  explicit Scene(unsigned seed) : random(seed), queries(draw(1, 9)), window(draw(1, 40)) {
    item.queryBegin = 2;
    item.queryCount = queries;
    for (int i = 0; i < item.queryBegin + queries; ++i) {
      queryPos.push_back(draw(0, 60));
      caller.push_back(draw(0, 100));
    }
    args.queryPos = queryPos.data();
    args.callerIndex = caller.data();
    TokenRecords tokens = this->tokens();
    // Mostly the same queries for a stretch of tokens, and positions in order: groups that all, some or no
    // rows see.
    int begin = 0, end = queries, position = draw(0, 50);
    for (int t = 0; t < kTokens; ++t) {
      if (draw(0, 7) == 0) {
        begin = draw(0, queries - 1);
        end = draw(begin, queries);
        position = draw(0, 60);
      }
      tokens.visible[t] = begin == end ? 0xffffu : static_cast<unsigned>(begin | end << 16);
      tokens.position[t] = position++;
      tokens.depth[t] = t / 7;
    }
  }
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }
  TokenRecords tokens() { return TokenRecords(records.data(), kTokens); }

  /// Rows beyond the item are its last one again.
  int queryOf(int row) const { return std::min(row, queries * Config::kRatio - 1) / Config::kRatio; }
  bool sees(int row, int token, bool hasWindow) {
    const int query = queryOf(row);
    const unsigned visible = tokens().visible[token];
    const int qPos = queryPos[static_cast<std::size_t>(item.queryBegin + query)];
    const int kvPos = tokens().position[token];
    return query >= static_cast<int>(visible & 0xffff) && query < static_cast<int>(visible >> 16) &&
           (!hasWindow || (kvPos <= qPos && kvPos > qPos - window));
  }
};

/// For every warp of an item and every group of tokens: hidden pairs are those that nobody sees, and what is
/// called whole or hidden is so.
template <class Variant> void compareWithCounting(unsigned seed, const typename Variant::Params &params) {
  Scene scene(seed);
  constexpr bool kHasWindow = Variant::kHasMask;
  using Rows = WarpRows<Config, Variant>;
  for (int firstRow = 0; firstRow < scene.queries * Config::kRatio; firstRow += 16)
    ASSERT_EQ(runBlock({.seed = seed},
                       [&] {
                         const int lane = static_cast<int>(threadIdx.x);
                         Rows rows(scene.args, params, scene.item, 1, firstRow);
                         rows.loadQueryFacts();
                         for (int group = 0; group < kTokens / 16; ++group) {
                           bool any = false, all = true;
                           for (int row = firstRow; row < firstRow + 16; ++row)
                             for (int t = group * 16; t < group * 16 + 16; ++t) {
                               any |= scene.sees(row, t, kHasWindow);
                               all &= scene.sees(row, t, kHasWindow);
                             }
                           const auto seen = rows.visibility(scene.tokens(), group);
                           if (!kHasWindow) {
                             EXPECT_EQ(seen, !any ? seen : all ? Rows::kWhole : Rows::kCut);
                           }
                           EXPECT_FALSE(seen == Rows::kHidden && any) << group;
                           EXPECT_FALSE(seen == Rows::kWhole && !all) << group;

                           Fragment<2> s{};
                           s.forEach([](float &x, int, int) { x = 1.f; });
                           rows.hide(scene.tokens(), group, s);
                           s.forEach([&](float &x, int r, int column) {
                             const int row = rows.row(r);
                             const int token = group * 16 + fragmentColumn(lane) + column;
                             EXPECT_EQ(row, firstRow + fragmentRow(lane, r));
                             EXPECT_EQ(x == 1.f, scene.sees(row, token, kHasWindow)) << row << " " << token;
                             EXPECT_TRUE(x == 1.f || x == -kInfinity);
                           });
                         }
                       }),
              "")
        << "seed " << seed;
}

TEST(WarpRowsTest, TheTreeAloneHidesWhatItHides) {
  for (unsigned seed = 1; seed <= 20; ++seed)
    compareWithCounting<test::PlainVariant>(seed, {});
}

TEST(WarpRowsTest, AWindowHidesWhatIsOutsideOfIt) {
  for (unsigned seed = 1; seed <= 20; ++seed)
    compareWithCounting<test::WindowVariant>(seed, {Scene(seed).window});
}

/// Somebody sees every token and nobody all of them: the hull of a warp's queries decides, and it is sharp.
TEST(WarpRowsTest, AGroupIsHiddenWhereTheHullsOfRowsAndTokensDoNotMeet) {
  Scene scene(1);
  scene.item.queryCount = scene.queries = 8;
  scene.queryPos.resize(10);
  scene.caller.resize(10);
  scene.args.queryPos = scene.queryPos.data();
  scene.args.callerIndex = scene.caller.data();
  for (int t = 0; t < kTokens; ++t)
    scene.tokens().visible[t] = t < 16 ? 0u | 4u << 16 : 4u | 8u << 16;
  using Rows = WarpRows<Config, test::PlainVariant>;
  for (int firstRow : {0, 16})
    EXPECT_EQ(runBlock({},
                       [&] {
                         Rows rows(scene.args, {}, scene.item, 0, firstRow);
                         EXPECT_EQ(rows.visibility(scene.tokens(), 0),
                                   firstRow == 0 ? Rows::kWhole : Rows::kHidden);
                         EXPECT_EQ(rows.visibility(scene.tokens(), 1),
                                   firstRow == 0 ? Rows::kHidden : Rows::kWhole);
                       }),
              "");
}

/// The a operand of a step: rows of the warp, 16 columns of each.
TEST(WarpRowsTest, QueriesAreLoadedAsOperands) {
  Scene scene(4);
  constexpr int kStride = Config::kQueryHeads * Config::kKeyDim + 48; // K and V of the query are there, too
  std::vector<std::uint16_t> q(101 * kStride);
  for (std::size_t i = 0; i < q.size(); ++i)
    q[i] = static_cast<std::uint16_t>(i * 7919u);
  scene.args.q = q.data();
  scene.args.qStride = kStride;
  constexpr int kSteps = Config::kKeyDim / 16;
  EXPECT_EQ(runBlock({},
                     [&] {
                       const int lane = static_cast<int>(threadIdx.x);
                       const WarpRows<Config, test::PlainVariant> rows(scene.args, {}, scene.item, 1, 0);
                       unsigned query[kSteps][4];
                       rows.loadQueries(query);
                       for (int k = 0; k < kSteps; ++k)
                         for (int i = 0; i < 4; ++i) {
                           const int row = std::min(lane / 4 + i % 2 * 8, scene.queries * 4 - 1);
                           const int column = k * 16 + i / 2 * 8 + lane % 4 * 2;
                           const int caller = scene.caller[static_cast<std::size_t>(2 + row / 4)];
                           const std::uint16_t *from =
                               q.data() + caller * kStride + (4 + row % 4) * Config::kKeyDim + column;
                           EXPECT_EQ(query[k][i], from[0] | unsigned{from[1]} << 16);
                         }
                     }),
            "");
}

} // namespace
} // namespace deft
