#include "runtime/sharing/PrefixForest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deft::sharing {
namespace {

/// Rows of eight pages of 4 tokens.
class PrefixForestTest : public testing::Test {
protected:
  static constexpr int kPageSize = 4, kRow = 8;

  PrefixForestTest() : table_(8 * kRow, -9) {}
  ~PrefixForestTest() override {
    const auto verified = forest_.verify(table_.data());
    EXPECT_TRUE(verified) << verified.error().message;
  }

  void write(int row, const std::vector<int> &pages) {
    std::copy(pages.begin(), pages.end(), table_.begin() + row * kRow);
  }
  int insert(int row, const std::vector<int> &pages, int tokens) {
    write(row, pages);
    const int member = forest_.insert(table_.data(), row * kRow, tokens);
    (void)forest_.settle();
    return member;
  }
  void grow(int member, int tokens) {
    forest_.grow(table_.data(), member, tokens);
    (void)forest_.settle();
  }
  void remove(int member) {
    std::fill_n(table_.begin() + forest_.firstEntry(member), kRow, -9); // at once
    forest_.remove(member);
    (void)forest_.settle();
  }

  /// "9@0 (7@9 3@41)": tokens and location of each node, children in brackets.
  std::string shape() const {
    std::string text;
    for (int node = forest_.tree().firstRoot(), depth = 0; node >= 0;) {
      const tree::Node &own = forest_.tree().nodes()[static_cast<std::size_t>(node)];
      text += std::to_string(own.tokens) + "@" + std::to_string(own.location);
      node = forest_.tree().nextInPreorder(node);
      const int next = node < 0 ? 0 : forest_.tree().nodes()[static_cast<std::size_t>(node)].depth;
      if (next > depth)
        text += " (", ++depth;
      else {
        for (; depth > next; --depth)
          text += ")";
        text += node < 0 ? "" : " ";
      }
    }
    return text;
  }

  std::vector<int> table_;
  PrefixForest forest_{PageSize(kPageSize)};
};

TEST_F(PrefixForestTest, RowsWithoutACommonPageAreRoots) {
  insert(0, {1, 2}, 7);
  insert(1, {2, 1}, 8);
  EXPECT_EQ(shape(), "7@0 8@32");
}

TEST_F(PrefixForestTest, APageAtAnotherPlaceIsNotShared) {
  insert(0, {1, 2, 3}, 12);
  insert(1, {1, 4, 3}, 12);
  EXPECT_EQ(shape(), "4@0 (8@4 8@36)");
}

TEST_F(PrefixForestTest, SharingEndsInsideAPage) {
  const int shorter = insert(0, {1, 2}, 6), longer = insert(1, {1, 2}, 7);
  EXPECT_EQ(shape(), "6@0 (1@38)");
  grow(shorter, 7);
  EXPECT_EQ(shape(), "7@32");
  EXPECT_EQ(forest_.endNode(shorter), forest_.endNode(longer));
}

TEST_F(PrefixForestTest, AShorterRowCutsOneThatIsThere) {
  insert(0, {1, 2, 3}, 11);
  insert(1, {1, 2}, 5);
  EXPECT_EQ(shape(), "5@0 (6@5)");
}

TEST_F(PrefixForestTest, EqualRowsAreOneNodeAndPartWhenTheyGrow) {
  const int a = insert(0, {1, 2, 3}, 8), b = insert(1, {1, 2, 4}, 8), c = insert(2, {1, 2}, 8);
  EXPECT_EQ(shape(), "8@0");
  grow(a, 9);
  EXPECT_EQ(shape(), "8@0 (1@8)");
  grow(b, 10);
  EXPECT_EQ(shape(), "8@0 (1@8 2@40)");
  remove(c);
  EXPECT_EQ(shape(), "8@0 (1@8 2@40)");
}

TEST_F(PrefixForestTest, ALeafGrowsInPlace) {
  insert(0, {1, 2, 3}, 9);
  const int longer = insert(1, {1, 4, 5, 6, 7}, 9);
  const std::uint64_t structure = forest_.tree().structureGeneration();
  for (int tokens = 10; tokens <= 20; ++tokens)
    forest_.grow(table_.data(), longer, tokens);
  EXPECT_FALSE(forest_.settle());
  EXPECT_EQ(forest_.tree().structureGeneration(), structure);
  EXPECT_EQ(shape(), "4@0 (5@4 16@36)");
}

TEST_F(PrefixForestTest, WhoLeavesIsNamedNoMore) {
  const int first = insert(0, {1, 2, 3}, 12), second = insert(1, {1, 2, 4}, 12);
  insert(2, {1, 5}, 8);
  EXPECT_EQ(shape(), "4@0 (4@4 (4@8 4@40) 4@68)");
  remove(first);
  EXPECT_EQ(shape(), "4@32 (8@36 4@68)");
  remove(second);
  EXPECT_EQ(shape(), "8@64");
}

TEST_F(PrefixForestTest, WhoEndsOnTheWayKeepsItsNode) {
  insert(0, {1, 2}, 8);
  const int longer = insert(1, {1, 2, 3}, 12);
  EXPECT_EQ(shape(), "8@0 (4@40)");
  remove(longer);
  EXPECT_EQ(shape(), "8@0");
}

TEST_F(PrefixForestTest, WhoEndsOnTheWayLeaves) {
  const int shorter = insert(0, {1, 2}, 8);
  insert(1, {1, 2, 3}, 12);
  remove(shorter);
  EXPECT_EQ(shape(), "12@32");
}

TEST_F(PrefixForestTest, RowsWithoutTokensEndNowhere) {
  const int empty = insert(0, {1}, 0), another = insert(1, {}, 0);
  insert(2, {1, 2}, 5);
  EXPECT_EQ(shape(), "0@0 5@64");
  grow(empty, 3);
  EXPECT_EQ(shape(), "0@0 3@64 (2@67)");
  remove(another);
  EXPECT_EQ(shape(), "3@64 (2@67)");
}

TEST_F(PrefixForestTest, MovedRowsAreFollowed) {
  const int a = insert(0, {1, 2, 3}, 12), b = insert(1, {1, 2, 4}, 11);
  write(5, {1, 2, 3});
  write(0, {7, 7, 7});
  forest_.move(a, 5 * kRow);
  forest_.placeMoved();
  EXPECT_EQ(shape(), "8@160 (4@168 3@40)");
  grow(b, 12);
  EXPECT_EQ(shape(), "8@160 (4@168 4@40)");
}

TEST_F(PrefixForestTest, QueriesGoWithTheStructureAndStayWithGrowth) {
  const int member = insert(0, {1, 2}, 5);
  const tree::Query query{forest_.endNode(member)};
  forest_.setQueries({&query, 1});
  grow(member, 6);
  EXPECT_EQ(forest_.tree().queries().size(), 1u);
  insert(1, {1, 2}, 3);
  EXPECT_TRUE(forest_.tree().queries().empty());
}

/// Whole steps of 6 tokens, one and a half pages, alone are shared.
class StepForestTest : public PrefixForestTest {
protected:
  StepForestTest() { forest_ = PrefixForest(PageSize(kPageSize), 6); }
};

TEST_F(StepForestTest, WhatIsBehindTheLastCommonStepIsReadByEach) {
  insert(0, {1, 2, 3}, 12);
  insert(1, {1, 2, 4}, 12); // 8 tokens in common
  EXPECT_EQ(shape(), "6@0 (6@6 6@38)");
  insert(2, {1, 2, 3}, 11); // 11 of the first one's
  EXPECT_EQ(shape(), "6@0 (6@6 6@38 5@70)");
  insert(3, {1, 5}, 8); // a page in common is no step
  EXPECT_EQ(shape(), "6@0 (6@6 6@38 5@70) 8@96");
}

TEST_F(StepForestTest, EqualRowsShareAllButTheirEnds) {
  const int first = insert(0, {1, 2}, 8), second = insert(1, {1, 2}, 8);
  EXPECT_EQ(shape(), "6@0 (2@6 2@38)");
  remove(first);
  EXPECT_EQ(shape(), "8@32");
  grow(second, 12);
  write(1, {1, 2, 3});
  insert(2, {1, 2, 3}, 12);
  EXPECT_EQ(shape(), "12@32");
}

TEST_F(StepForestTest, ALeafThatGrowsToAnothersStepGoesThere) {
  write(0, {1, 2, 3});
  const int first = insert(0, {1, 2, 3}, 8), second = insert(1, {1, 2, 3}, 8);
  grow(first, 12);
  EXPECT_EQ(shape(), "6@0 (6@6 2@38)");
  grow(second, 13);
  EXPECT_EQ(shape(), "12@0 (1@44)");
}

} // namespace
} // namespace deft::sharing
