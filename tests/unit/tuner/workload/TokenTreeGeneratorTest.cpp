#include "tuner/workload/TokenTreeGenerator.h"

#include <gtest/gtest.h>

#include <deque>

namespace deft::workload {
namespace {

/// Accepts what it is told to.
class Told : public TokenTreeGenerator {
public:
  using TokenTreeGenerator::depthOf;
  using TokenTreeGenerator::TokenTreeGenerator;
  int steps() const override { return 100; }
  std::deque<std::pair<int, int>> told; ///< the last token accepted, and how many more

protected:
  Accepted accept(int) override {
    const auto [last, more] = told.front();
    told.pop_front();
    return {last, more};
  }
};

/// Two guesses for the next token; behind the first one two more in a row, of which the last has a rival.
const std::vector<int> kParents{-1, -1, 0, 2, 2};

class TokenTreeGeneratorTest : public testing::Test {
protected:
  void SetUp() override { generator.start(editor); }
  void advance(int last, int more) {
    generator.told.emplace_back(last, more);
    queries.clear();
    generator.advance(2, editor);
    ASSERT_FALSE(editor.hasFailed()) << editor.error()->message;
  }
  /// Whether one guess of a token each hangs below the sequence, in the shape that was told, with a query
  /// each.
  void expectGuessed(int sequenceTokens) const {
    ASSERT_EQ(queries.size(), kParents.size());
    EXPECT_EQ(tree.tokens(), sequenceTokens + static_cast<int>(kParents.size()));
    for (std::size_t i = 0; i < kParents.size(); ++i) {
      const tree::Node &node = tree.nodes()[queries[i].node];
      EXPECT_EQ(node.tokens, 1);
      EXPECT_EQ(node.position, sequenceTokens + generator.depthOf(static_cast<int>(i)) - 1) << i;
      if (kParents[i] >= 0) {
        EXPECT_EQ(node.parent, queries[static_cast<std::size_t>(kParents[i])].node) << i;
      }
    }
  }

  tree::KvTree tree;
  std::vector<tree::TreeEdit> edits;
  std::vector<tree::Query> queries;
  Editor editor{tree, edits, queries};
  Told generator{30, kParents};
};

TEST_F(TokenTreeGeneratorTest, ATreeOfGuessesHangsBelowThePrompt) {
  expectGuessed(30);
  EXPECT_EQ(generator.depthOf(-1), 0);
  EXPECT_EQ(generator.depthOf(1), 1);
  EXPECT_EQ(generator.depthOf(4), 3);
}

TEST_F(TokenTreeGeneratorTest, TheSequenceGainsAPathAndWhatTheModelAdds) {
  advance(3, 1); // three guesses, and the token behind them
  expectGuessed(34);
  advance(1, 0);
  expectGuessed(35);
}

TEST_F(TokenTreeGeneratorTest, NoGuessMayBeRight) {
  advance(-1, 1);
  expectGuessed(31);
  advance(-1, 0);
  expectGuessed(31);
}

} // namespace
} // namespace deft::workload
