#include "runtime/exec/cpu/TokenBlocks.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

/// Runs of an item, and a kernel of 8 tokens a block and 4 rows a group.
struct Walk {
  explicit Walk(std::initializer_list<abi::Run> runs, int ratio = 2) : ratio(ratio) {
    plan.runs.own() = runs;
    item.runCount = static_cast<int>(plan.runs.size());
    item.queryCount = 3;
    kernel.blockTokens = 8;
    kernel.groupRows = 4;
    inputs.cache.k = {.pageStride = 1000, .tokenStride = 10, .headStride = 1};
    inputs.cache.v = {.pageStride = 300, .tokenStride = 3, .headStride = 1};
    inputs.pageSize = 4;
    inputs.pageTable = pageTable;
  }
  std::vector<TokenBlock> all() const {
    TokenBlocks walk(plan, item, inputs, ratio, kernel);
    std::vector<TokenBlock> blocks;
    for (TokenBlock block; walk.next(block);)
      blocks.push_back(block);
    return blocks;
  }
  int ratio;
  plan::Plan plan;
  abi::Item item{};
  abi::CpuKernel kernel{};
  InputView inputs;
  static constexpr int pageTable[] = {5, 3, 9, 0, 7, 2};
};

abi::Run run(int tokens, int location, int position, int depth, int queryBegin, int queryEnd) {
  return {0, tokens, location, position, depth, queryBegin, queryEnd, 0, 0};
}

std::vector<long long> firstOf(const std::vector<long long> &values, int count) {
  return {values.begin(), values.begin() + count};
}
std::vector<int> firstOf(const std::vector<int> &values, int count) {
  return {values.begin(), values.begin() + count};
}

TEST(TokenBlocksTest, OffsetsFollowThePagesOverTheirEnds) {
  const auto blocks = Walk({run(10, 3, 20, 1, 0, 2)}).all();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(firstOf(blocks[0].keyOffsets, 8),
            (std::vector<long long>{5030, 3000, 3010, 3020, 3030, 9000, 9010, 9020}));
  EXPECT_EQ(firstOf(blocks[0].valueOffsets, 8),
            (std::vector<long long>{1509, 900, 903, 906, 909, 2700, 2703, 2706}));
  EXPECT_EQ(blocks[1].tokens, 2);
  EXPECT_EQ(firstOf(blocks[1].keyOffsets, 4), (std::vector<long long>{9030, 0, 0, 0})); // padded
  EXPECT_EQ(firstOf(blocks[1].kvPos, 2), (std::vector<int>{28, 29}));
  EXPECT_FALSE(blocks[0].cut);
  EXPECT_FALSE(blocks[1].cut);
  EXPECT_EQ(blocks[0].rowEnd, 4);
}

TEST(TokenBlocksTest, SlotsAreCountedWhereTheKernelReadsThem) {
  Walk walk({run(10, 3, 20, 1, 0, 2)});
  EXPECT_TRUE(walk.all()[0].slots.empty());
  walk.kernel.readsSlots = 1;
  const auto blocks = walk.all();
  EXPECT_EQ(firstOf(blocks[0].slots, 8), (std::vector<long long>{23, 12, 13, 14, 15, 36, 37, 38}));
  EXPECT_EQ(firstOf(blocks[1].slots, 4), (std::vector<long long>{39, 0, 0, 0})); // padded
  walk.inputs.pageSize = 0;
  EXPECT_EQ(firstOf(walk.all()[1].slots, 2), (std::vector<long long>{11, 12}));
}

TEST(TokenBlocksTest, RowsOfACausalStretchBecomeFewerFromTokenToToken) {
  abi::Run sloped = run(3, 4, 20, 1, 0, 3);
  sloped.slope = 1;
  const auto blocks = Walk({run(7, 8, 0, 0, 0, 3), sloped}).all();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(firstOf(blocks[0].rowLow, 8), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(blocks[0].cut);
  EXPECT_EQ(blocks[1].rowBegin, 0); // row 2, and the group that has it
  EXPECT_EQ(firstOf(blocks[1].rowLow, 2), (std::vector<int>{2, 4}));
  EXPECT_EQ(firstOf(blocks[1].rowHigh, 2), (std::vector<int>{6, 6}));
  EXPECT_TRUE(blocks[1].cut);
}

TEST(TokenBlocksTest, AContiguousCacheHasNoPages) {
  Walk walk({run(3, 7, 0, 0, 0, 1)});
  walk.inputs.pageSize = 0;
  const TokenBlock block = walk.all().front();
  EXPECT_EQ(firstOf(block.keyOffsets, 3), (std::vector<long long>{70, 80, 90}));
  EXPECT_EQ(firstOf(block.valueOffsets, 3), (std::vector<long long>{21, 24, 27}));
}

TEST(TokenBlocksTest, ShortRunsShareABlock) {
  // A root that all see, then a token for each query.
  const auto blocks =
      Walk({run(5, 0, 0, 0, 0, 3), run(1, 8, 5, 1, 0, 1), run(1, 9, 5, 1, 1, 2), run(2, 10, 5, 1, 2, 3)})
          .all();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].tokens, 8);
  EXPECT_TRUE(blocks[0].cut);
  EXPECT_EQ(firstOf(blocks[0].rowLow, 8), (std::vector<int>{0, 0, 0, 0, 0, 0, 2, 4}));
  EXPECT_EQ(firstOf(blocks[0].rowHigh, 8), (std::vector<int>{6, 6, 6, 6, 6, 2, 4, 6}));
  EXPECT_EQ(firstOf(blocks[0].depth, 8), (std::vector<int>{0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(blocks[0].kvPosHigh, 5);
  EXPECT_EQ(blocks[0].depthHigh, 1);
  // The last token is only of rows 4 and 5: its call begins with their group.
  EXPECT_EQ(blocks[1].tokens, 1);
  EXPECT_EQ(blocks[1].rowBegin, 4);
  EXPECT_EQ(blocks[1].rowEnd, 6);
  EXPECT_FALSE(blocks[1].cut);
  EXPECT_EQ(blocks[1].kvPosLow, 6);
}

TEST(TokenBlocksTest, PaddingIsSeenByNobody) {
  const auto blocks = Walk({run(5, 0, 0, 0, 0, 2)}).all();
  ASSERT_EQ(blocks.size(), 1u);
  for (std::size_t t = 5; t < 8; ++t) {
    EXPECT_EQ(blocks[0].keyOffsets[t], blocks[0].keyOffsets[4]);
    EXPECT_EQ(blocks[0].valueOffsets[t], blocks[0].valueOffsets[4]);
    EXPECT_GE(blocks[0].rowLow[t], blocks[0].rowHigh[t]);
  }
}

TEST(TokenBlocksTest, RunsThatNobodySeesAndEmptyItemsGiveNoBlock) {
  EXPECT_TRUE(Walk({}).all().empty());
  EXPECT_TRUE(Walk({run(4, 0, 0, 0, 2, 2)}).all().empty());
  EXPECT_EQ(Walk({run(4, 0, 0, 0, 2, 2), run(1, 4, 0, 0, 0, 1)}).all().front().tokens, 1);
}

TEST(TokenBlocksTest, AGroupThatEndsWithOtherRowsIsCut) {
  EXPECT_TRUE(Walk({run(4, 0, 0, 0, 0, 1)}).all()[0].cut);  // rows 0 and 1, then 2 and 3 of another query
  EXPECT_FALSE(Walk({run(4, 0, 0, 0, 2, 3)}).all()[0].cut); // rows 4 and 5, and no more in the item
}

TEST(TokenBlocksTest, AGroupThatStartsWithOtherRowsIsCut) {
  const auto blocks = Walk({run(4, 0, 0, 0, 1, 2)}, 3).all(); // rows 3 to 5 of groups of 4
  EXPECT_EQ(blocks[0].rowBegin, 0);
  EXPECT_TRUE(blocks[0].cut);
  EXPECT_EQ(blocks[0].rowLow[0], 3);
}

TEST(TokenBlocksTest, FewRowsGoInShortBlocksUnlessThePlanIsInvariant) {
  Walk walk({run(100, 0, 0, 0, 0, 3)});
  walk.kernel.blockTokens = 64;
  const auto tokensAt = [&](int ratio) {
    return TokenBlocks::mostTokens(walk.plan, walk.item, ratio, walk.kernel);
  };
  EXPECT_EQ(tokensAt(2), 16); // 6 rows
  EXPECT_EQ(tokensAt(3), 64); // 9
  walk.plan.strictChunk = 128;
  EXPECT_EQ(tokensAt(2), 64);
  walk.plan.strictChunk = 0;
  walk.kernel.blockTokens = 8; // the kernel's limit holds
  EXPECT_EQ(tokensAt(2), 8);
}

} // namespace
} // namespace deft::exec
