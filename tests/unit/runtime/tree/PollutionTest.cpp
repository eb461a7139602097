#include "runtime/tree/SequenceTree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace deft::tree {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SequenceTree make(int pageSize, std::int64_t pages) {
  return SequenceTree::make({.pageSize = pageSize, .pages = pages}).value();
}

support::Result<void> polluteOne(SequenceTree &sequences, const NodeTokens &tokens) {
  return sequences.pollute(std::span(&tokens, 1));
}

TEST(PollutionTest, BranchesShareWhatTheyShare) {
  SequenceTree sequences = make(4, 20);
  const int prompt = sequences.addNode(-1, 10).value();
  EXPECT_THAT(sequences.polluted(), IsEmpty());
  ASSERT_TRUE(sequences.append(prompt, 3));
  ASSERT_TRUE(polluteOne(sequences, {prompt, 10, 3}));
  const int branch = sequences.fork(prompt, 11).value(); // amid what is polluted
  const int upper = sequences.tree().nodes()[branch].parent;
  EXPECT_THAT(sequences.polluted(), ElementsAre(NodeTokens{upper, 10, 1}, NodeTokens{prompt, 0, 2}));
  ASSERT_TRUE(sequences.append(branch, 2)); // takes a copy of a page in which a polluted token lies
  ASSERT_TRUE(polluteOne(sequences, {branch, 1, 1}));
  EXPECT_THAT(sequences.polluted(),
              ElementsAre(NodeTokens{upper, 10, 1}, NodeTokens{prompt, 0, 2}, NodeTokens{branch, 1, 1}));
  ASSERT_TRUE(sequences.prune(prompt));
  EXPECT_THAT(sequences.polluted(), ElementsAre(NodeTokens{upper, 10, 1}, NodeTokens{branch, 1, 1}));
  ASSERT_TRUE(sequences.correct(std::vector<NodeTokens>{{upper, 0, 11}, {branch, 1, 1}}));
  EXPECT_THAT(sequences.polluted(), IsEmpty());
}

TEST(PollutionTest, AcceptedDraftsTakeItAlong) {
  SequenceTree sequences = make(4, 20);
  const int sequence = sequences.addNode(-1, 6).value();
  const auto drafts = sequences.addTokenTree(sequence, std::vector<int>{-1, 0, 0, 2}).value();
  for (const int polluted : {0, 1, 3})
    ASSERT_TRUE(polluteOne(sequences, {drafts[static_cast<std::size_t>(polluted)], 0, 1}));
  ASSERT_TRUE(sequences.accept(sequence, drafts[3])); // by way of 0 and 2
  EXPECT_THAT(sequences.polluted(), ElementsAre(NodeTokens{sequence, 6, 1}, NodeTokens{sequence, 8, 1}));
}

TEST(PollutionTest, SlotsThatAreGivenAgainAreClean) {
  SequenceTree sequences = make(4, 3);
  const int first = sequences.addNode(-1, 12).value();
  ASSERT_TRUE(polluteOne(sequences, {first, 0, 12}));
  ASSERT_TRUE(sequences.prune(first));
  const int second = sequences.addNode(-1, 8).value();
  ASSERT_TRUE(sequences.append(second, 4));
  EXPECT_THAT(sequences.polluted(), IsEmpty());
}

TEST(PollutionTest, TokensThatANodeHasNotAreAnError) {
  SequenceTree sequences = make(4, 3);
  const int node = sequences.addNode(-1, 5).value();
  EXPECT_EQ(polluteOne(sequences, {node, 3, 3}).error().message,
            "3 tokens from 3 on are not those of node 0, which has 5");
  EXPECT_EQ(polluteOne(sequences, {7, 0, 1}).error().message, "there is no node 7");
  EXPECT_FALSE(sequences.correct(std::vector<NodeTokens>{{node, -1, 2}}));
  EXPECT_TRUE(polluteOne(sequences, {node, 5, 0}));
}

/// What each token of each node is, without slots and pages.
struct Model {
  std::map<int, std::vector<bool>> of;

  void split(int node, int upper, int position) {
    std::vector<bool> &own = of[node];
    of[upper].assign(own.begin(), own.begin() + position);
    own.erase(own.begin(), own.begin() + position);
  }
  void accept(int sequence, const std::vector<int> &path) {
    for (const int node : path)
      of[sequence].insert(of[sequence].end(), of[node].begin(), of[node].end());
  }
};

std::map<int, std::vector<bool>> marksOf(const SequenceTree &sequences) {
  std::map<int, std::vector<bool>> marks;
  const KvTree &tree = sequences.tree();
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    marks[node].resize(static_cast<std::size_t>(tree.nodes()[node].tokens));
  for (const NodeTokens &some : sequences.polluted())
    for (int t = 0; t < some.tokens; ++t)
      marks[some.node][static_cast<std::size_t>(some.first + t)] = true;
  return marks;
}

/// Random forks, growth, drafts, accepts, prunes and corrections.
void follow(unsigned seed, int pageSize) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  SequenceTree sequences = make(pageSize, 4000);
  Model model;
  const KvTree &tree = sequences.tree();
  const auto anyNode = [&] {
    std::vector<int> alive;
    for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
      alive.push_back(node);
    return alive.empty() ? -1 : alive[static_cast<std::size_t>(below(alive.size()))];
  };
  for (int step = 0; step < 300; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const int node = anyNode(), kind = below(10);
    if (node < 0 || kind == 0) {
      const int tokens = below(20),
                made = sequences.addNode(kind == 0 && below(2) ? node : -1, tokens).value();
      model.of[made].assign(static_cast<std::size_t>(tokens), false);
      continue;
    }
    const int own = tree.nodes()[node].tokens;
    if (kind <= 3 && tree.nodes()[node].firstChild < 0) { // a sparse step
      const int tokens = 1 + below(6);
      ASSERT_TRUE(sequences.append(node, tokens));
      ASSERT_TRUE(polluteOne(sequences, {node, own + 1, tokens - 1}));
      model.of[node].push_back(false);
      model.of[node].insert(model.of[node].end(), static_cast<std::size_t>(tokens) - 1, true);
    } else if (kind <= 5) {
      const int position = below(static_cast<std::size_t>(own) + 1);
      const int branch = sequences.fork(node, position).value();
      model.of[branch] = {};
      if (const int upper = tree.nodes()[branch].parent; position > 0 && upper != node)
        model.split(node, upper, position);
    } else if (kind == 6 && tree.nodes()[node].firstChild < 0) {
      std::vector<int> parents;
      for (int i = 0; i < 1 + below(6); ++i)
        parents.push_back(below(static_cast<std::size_t>(i) + 1) - 1);
      const auto drafts = sequences.addTokenTree(node, parents).value();
      for (const int draft : drafts) {
        const bool isPolluted = below(2) == 0;
        model.of[draft] = {isPolluted};
        if (isPolluted) {
          ASSERT_TRUE(polluteOne(sequences, {draft, 0, 1}));
        }
      }
      const auto last = static_cast<std::size_t>(below(drafts.size()));
      std::vector<int> path;
      for (int at = static_cast<int>(last); at >= 0; at = parents[static_cast<std::size_t>(at)])
        path.insert(path.begin(), drafts[static_cast<std::size_t>(at)]);
      ASSERT_TRUE(sequences.accept(node, drafts[last]));
      model.accept(node, path);
    } else if (kind == 7 && below(3) == 0) {
      ASSERT_TRUE(sequences.prune(node));
    } else if (kind == 8) {
      const std::vector<NodeTokens> some{{node, 0, below(static_cast<std::size_t>(own) + 1)}};
      ASSERT_TRUE(sequences.correct(some));
      std::fill_n(model.of[node].begin(), some[0].tokens, false);
    }
    std::erase_if(model.of, [&](const auto &entry) { return !tree.isAlive(entry.first); });
    ASSERT_EQ(marksOf(sequences), model.of);
  }
}

TEST(PollutionTest, FollowsForksAcceptsAndPrunesAsAModelDoes) {
  for (unsigned seed = 1; seed <= 30; ++seed)
    for (const int pageSize : {0, 1, 4, 16}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", pages of " + std::to_string(pageSize));
      follow(seed, pageSize);
    }
}

} // namespace
} // namespace deft::tree
