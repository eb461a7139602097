#include "tuner/workload/Branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::workload {
namespace {

using testing::ElementsAre;

/// A prompt and branches of {tokens at first, last step}.
class SomeBranches : public BranchGenerator {
public:
  SomeBranches(std::vector<std::pair<int, int>> branches, bool prunes)
      : BranchGenerator(1), branches_(std::move(branches)) {
    if (prunes)
      pruneFinished();
  }

protected:
  void build(Editor &editor) override {
    const int prompt = editor.addNode(-1, 100);
    for (const auto &[tokens, last] : branches_)
      branch(prompt, tokens, last);
  }

private:
  std::vector<std::pair<int, int>> branches_;
};

struct Decoding {
  tree::KvTree tree;
  std::vector<tree::TreeEdit> edits;
  std::vector<tree::Query> queries;
  Editor editor{tree, edits, queries};
  SomeBranches generator;

  Decoding(std::vector<std::pair<int, int>> branches, bool prunes) : generator(std::move(branches), prunes) {
    generator.start(editor);
  }
  void advance(int step) {
    queries.clear();
    generator.advance(step, editor);
    EXPECT_FALSE(editor.hasFailed()) << editor.error()->message;
  }
  std::vector<int> tokens() const { ///< of the branches; -1: it has left the tree
    std::vector<int> tokens;
    for (int leaf = 1; leaf < static_cast<int>(tree.nodes().size()); ++leaf)
      tokens.push_back(tree.isAlive(leaf) ? tree.nodes()[leaf].tokens : -1);
    return tokens;
  }
  std::vector<int> asked() const {
    std::vector<int> nodes;
    for (const tree::Query &query : queries)
      nodes.push_back(query.node);
    return nodes;
  }
};

TEST(BranchesTest, EachDecodesATokenAStepUntilItHasEnough) {
  Decoding run({{5, 3}, {1, 1}, {7, 2}}, false);
  EXPECT_EQ(run.generator.steps(), 3);
  EXPECT_THAT(run.tokens(), ElementsAre(5, 1, 7));
  EXPECT_THAT(run.asked(), ElementsAre(1, 2, 3));
  run.advance(2);
  EXPECT_THAT(run.tokens(), ElementsAre(6, 1, 8));
  EXPECT_THAT(run.asked(), ElementsAre(1, 3));
  run.advance(3);
  EXPECT_THAT(run.tokens(), ElementsAre(7, 1, 8));
  EXPECT_THAT(run.asked(), ElementsAre(1));
}

TEST(BranchesTest, FinishedOnesLeaveTheTreeOnce) {
  Decoding run({{5, 4}, {1, 1}, {7, 2}}, true);
  run.advance(2);
  EXPECT_THAT(run.tokens(), ElementsAre(6, -1, 8)) << "what was decoded last is read in its own step";
  run.advance(3);
  EXPECT_THAT(run.tokens(), ElementsAre(7, -1, -1));
  run.advance(4);
  EXPECT_THAT(run.tokens(), ElementsAre(8, -1, -1));
  EXPECT_EQ(run.tree.tokens(), 108);
}

} // namespace
} // namespace deft::workload
