#include "runtime/tree/SequenceTree.h"

#include "runtime/tree/TreeFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>

namespace deft::tree {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SequenceTree make(int pageSize, std::int64_t pages) {
  return SequenceTree::make({.pageSize = pageSize, .pages = pages}).value();
}

TEST(SequenceTreeTest, BranchesSharePromptsAndHaveTheirOwnPages) {
  SequenceTree sequences = make(16, 10);
  const int prompt = sequences.addNode(-1, 40).value();
  const int one = sequences.fork(prompt).value(), two = sequences.fork(prompt).value();
  EXPECT_EQ(sequences.pool().usedPages(), 3);
  for (int step = 0; step < 16; ++step)
    for (int branch : {one, two})
      EXPECT_THAT(*sequences.append(branch, 1), IsEmpty());
  EXPECT_EQ(sequences.pool().usedPages(), 5);
  EXPECT_EQ(sequences.tree().nodes()[one].tokens, 16);
  ASSERT_TRUE(sequences.prune(one));
  EXPECT_EQ(sequences.pool().usedPages(), 4);
  ASSERT_TRUE(sequences.prune(prompt));
  EXPECT_EQ(sequences.pool().usedPages(), 0);
}

TEST(SequenceTreeTest, GrowthInPlaceKeepsTheStructure) {
  SequenceTree sequences = make(16, 100);
  const int prompt = sequences.addNode(-1, 40).value();
  std::vector<int> leaves;
  for (int i = 0; i < 5; ++i) {
    leaves.push_back(sequences.fork(prompt).value());
    ASSERT_TRUE(sequences.append(leaves.back(), 1));
  }
  const std::uint64_t structure = sequences.tree().structureGeneration();
  for (int step = 0; step < 100; ++step)
    for (int leaf : leaves)
      ASSERT_TRUE(sequences.append(leaf, 1));
  EXPECT_EQ(sequences.tree().structureGeneration(), structure);
}

TEST(SequenceTreeTest, AStepOfAThousandBranchesTakesMicroseconds) {
  SequenceTree sequences = make(16, 100000);
  const int prompt = sequences.addNode(-1, 4000).value();
  std::vector<int> leaves;
  for (int i = 0; i < 1000; ++i) {
    leaves.push_back(sequences.fork(prompt).value());
    ASSERT_TRUE(sequences.append(leaves.back(), 1));
  }
  double bestUs = 1e9, sumUs = 0;
  for (int step = 0; step < 256; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    for (int leaf : leaves)
      ASSERT_TRUE(sequences.append(leaf, 1));
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
    bestUs = std::min(bestUs, us.count());
    sumUs += us.count();
  }
  RecordProperty("best_microseconds", std::to_string(bestUs));
  RecordProperty("mean_microseconds", std::to_string(sumUs / 256));
  EXPECT_LT(sumUs / 256, 5000); // about 50 in an optimised build; only a wrong order of growth fails
}

TEST(SequenceTreeTest, AForkInTheMiddleSplitsTheRangeToo) {
  SequenceTree sequences = make(16, 10);
  const int node = sequences.addNode(-1, 20).value();
  const int branch = sequences.fork(node, 10).value();
  const int upper = sequences.tree().nodes()[branch].parent;
  EXPECT_EQ(sequences.tree().nodes()[node].location, sequences.tree().nodes()[upper].location + 10);
  ASSERT_TRUE(sequences.append(branch, 3));
  ASSERT_TRUE(sequences.append(node, 3));
  EXPECT_EQ(sequences.pool().usedPages(), 3);
  ASSERT_TRUE(sequences.prune(node));
  EXPECT_EQ(sequences.pool().usedPages(), 2);
  ASSERT_TRUE(sequences.prune(branch));
  ASSERT_TRUE(sequences.append(upper, 6)); // a leaf again, and alone in its page
  EXPECT_EQ(sequences.pool().usedPages(), 1);
}

TEST(SequenceTreeTest, AcceptedTokensMoveBehindTheSequence) {
  SequenceTree sequences = make(16, 10);
  const int sequence = sequences.addNode(-1, 5).value();
  const std::vector<int> parents = {-1, 0, 0, 1, 2};
  const auto tokens = sequences.addTokenTree(sequence, parents);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(sequences.pool().usedPages(), 2); // a token tree begins a page, so that the sequence may grow
  const auto copies = sequences.accept(sequence, (*tokens)[4]);
  ASSERT_TRUE(copies);
  EXPECT_THAT(*copies, ElementsAre(TokenCopy{16, 5, 1}, TokenCopy{18, 6, 1}, TokenCopy{20, 7, 1}));
  EXPECT_EQ(sequences.tree().nodes()[sequence].tokens, 8);
  EXPECT_EQ(sequences.tree().aliveNodes(), 1);
  EXPECT_EQ(sequences.pool().usedPages(), 1);
  EXPECT_THAT(*sequences.accept(sequence, sequence), IsEmpty());
}

TEST(SequenceTreeTest, FailuresChangeNothing) {
  SequenceTree sequences = make(16, 3);
  const int prompt = sequences.addNode(-1, 30).value();
  const int branch = sequences.fork(prompt).value();
  const std::string before = formatTree(sequences.tree());
  const std::uint64_t generation = sequences.tree().generation();
  EXPECT_FALSE(sequences.addNode(prompt, 17));
  EXPECT_FALSE(sequences.addNode(99, 1));
  EXPECT_FALSE(sequences.append(branch, 17));
  EXPECT_FALSE(sequences.append(prompt, 1));
  EXPECT_FALSE(sequences.append(99, 1));
  EXPECT_FALSE(sequences.append(branch, -1));
  EXPECT_FALSE(sequences.split(prompt, 30));
  EXPECT_FALSE(sequences.fork(prompt, 31));
  EXPECT_FALSE(sequences.prune(99));
  EXPECT_FALSE(sequences.accept(branch, prompt));
  EXPECT_FALSE(sequences.addTokenTree(branch, std::vector<int>(17, -1)));
  EXPECT_FALSE(sequences.addTokenTree(branch, std::vector<int>{0}));
  EXPECT_FALSE(sequences.addTokenTree(99, std::vector<int>{-1}));
  EXPECT_EQ(formatTree(sequences.tree()), before);
  EXPECT_EQ(sequences.tree().generation(), generation);
  EXPECT_EQ(sequences.pool().usedPages(), 2);
  EXPECT_TRUE(sequences.pool().verify());
}

/// What the cache holds, written and copied as a caller would, and what every node should read there.
class Cache {
public:
  explicit Cache(const SequenceTree &sequences) : sequences_(sequences) {}

  void copy(const std::vector<TokenCopy> &copies) {
    std::map<std::int64_t, int> written; // those of one call at once
    for (const TokenCopy &copy : copies)
      for (int i = 0; i < copy.tokens; ++i)
        written[copy.to + i] = memory_.at(copy.from + i);
    for (const auto &[slot, token] : written)
      memory_[slot] = token;
  }
  void write(int node, int from) {
    own[node].resize(static_cast<std::size_t>(from));
    for (int i = from; i < sequences_.tree().nodes()[node].tokens; ++i) {
      own[node].push_back(next_);
      memory_[slot(node, i)] = next_++;
    }
  }
  void expectReads() const {
    std::set<std::int64_t> slots;
    std::size_t tokens = 0;
    ASSERT_EQ(static_cast<int>(own.size()), sequences_.tree().aliveNodes());
    for (const auto &[node, expected] : own) {
      ASSERT_EQ(sequences_.tree().nodes()[node].tokens, static_cast<int>(expected.size()));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(memory_.at(slot(node, static_cast<int>(i))), expected[i])
            << "token " << i << " of node " << node;
        slots.insert(slot(node, static_cast<int>(i)));
      }
      tokens += expected.size();
    }
    ASSERT_EQ(slots.size(), tokens); // no slot has two tokens
  }

  std::map<int, std::vector<int>> own; ///< tokens of each node

private:
  std::int64_t slot(int node, int token) const {
    return sequences_.pool().slotOf(sequences_.tree().nodes()[node].location + token);
  }
  const SequenceTree &sequences_;
  std::map<std::int64_t, int> memory_;
  int next_ = 0;
};

TEST(SequenceTreeTest, RandomHistoriesReadTheirOwnTokens) {
  for (int pageSize : {0, 1, 7, 16})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE("page size " + std::to_string(pageSize) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
      SequenceTree sequences = make(pageSize, (150 + below(300)) / std::max(pageSize, 1));
      const KvTree &tree = sequences.tree();
      Cache cache(sequences);
      int failures = 0;
      for (int step = 0; step < 300; ++step) {
        const std::string before = formatTree(tree);
        const std::int64_t used = sequences.pool().usedPages();
        const int count = static_cast<int>(tree.nodes().size());
        const int node = below(static_cast<std::size_t>(count) + 1) - (below(6) == 0 ? 1 : 0);
        bool isDone = false;
        switch (below(8)) {
        case 0:
          if (const auto added = sequences.addNode(node, below(30)); (isDone = added.ok()))
            cache.write(*added, 0);
          break;
        case 1:
          if (tree.isAlive(node)) {
            const int position = below(static_cast<std::size_t>(tree.nodes()[node].tokens) + 1);
            const std::vector<int> old = cache.own.at(node);
            const auto branch = sequences.fork(node, position);
            ASSERT_TRUE(branch);
            isDone = true;
            cache.own[*branch] = {};
            const int upper = tree.nodes()[*branch].parent;
            if (position > 0 && position < static_cast<int>(old.size())) {
              cache.own[upper] = {old.begin(), old.begin() + position};
              cache.own[node] = {old.begin() + position, old.end()};
            }
          }
          break;
        case 2:
          if (below(2) == 0 && (isDone = sequences.prune(node).ok()))
            std::erase_if(cache.own, [&](const auto &entry) { return !tree.isAlive(entry.first); });
          break;
        case 3: {
          std::vector<int> parents(1 + below(12));
          for (std::size_t i = 0; i < parents.size(); ++i)
            parents[i] = below(i + 1) - 1;
          if (const auto nodes = sequences.addTokenTree(node, parents); (isDone = nodes.ok()))
            for (int token : *nodes)
              cache.write(token, 0);
          break;
        }
        case 4: {
          const int last = below(static_cast<std::size_t>(count) + 1);
          if (!tree.isAlive(node) || !tree.isAlive(last))
            break;
          std::vector<int> tokens;
          for (int at = last; at >= 0 && at != node; at = tree.nodes()[at].parent)
            tokens.insert(tokens.begin(), cache.own.at(at).begin(), cache.own.at(at).end());
          if (const auto copies = sequences.accept(node, last); (isDone = copies.ok())) {
            cache.copy(*copies);
            cache.own[node].insert(cache.own[node].end(), tokens.begin(), tokens.end());
            std::erase_if(cache.own, [&](const auto &entry) { return !tree.isAlive(entry.first); });
          }
          break;
        }
        default:
          if (tree.isAlive(node)) {
            const int old = tree.nodes()[node].tokens;
            if (const auto copies = sequences.append(node, below(6)); (isDone = copies.ok())) {
              cache.copy(*copies);
              cache.write(node, old);
            }
          }
        }
        if (!isDone) {
          ++failures;
          ASSERT_EQ(formatTree(tree), before);
          ASSERT_EQ(sequences.pool().usedPages(), used);
        }
        const auto verified = sequences.pool().verify();
        ASSERT_TRUE(verified) << verified.error().message << ", step " << step;
        cache.expectReads();
        if (HasFatalFailure())
          return;
      }
      EXPECT_GT(failures, 0);
      while (tree.firstRoot() >= 0)
        ASSERT_TRUE(sequences.prune(tree.firstRoot()));
      ASSERT_EQ(sequences.pool().usedPages(), 0);
      ASSERT_TRUE(sequences.pool().verify());
    }
}

} // namespace
} // namespace deft::tree
