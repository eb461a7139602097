#include "tests/support/TestTrees.h"

#include "tests/support/Forest.h"

#include <algorithm>
#include <random>

namespace deft::test {

using tree::KvTree;

namespace {

/// Speculative decoding: a prompt, and a tree of `nodes` guessed tokens with a query on each. A token is
/// more often guessed after an early one, as drafting heads do.
KvTree speculativeTree(int promptTokens, int nodes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  KvTree tree;
  (void)tree.addNode(-1, promptTokens).value();
  for (int i = 0; i < nodes; ++i) {
    const auto pick = [&] { return static_cast<int>(random() % static_cast<std::uint64_t>(i + 1)); };
    const int node = tree.addNode(std::min(pick(), pick()), 1).value();
    (void)tree.addQuery(node).value();
  }
  return tree;
}

} // namespace

std::vector<NamedTree> testTrees() {
  std::vector<NamedTree> trees;
  const std::vector<NamedTree> edges = edgeTrees();
  for (const char *name : {"one_token", "empty_path", "empty_nodes_between", "deep_chain", "wide_fan",
                           "several_roots", "queries_inside_nodes", "token_tree", "page_minus_one",
                           "page_plus_one", "same_query_often", "unread_branches"})
    trees.push_back(
        *std::find_if(edges.begin(), edges.end(), [&](const auto &edge) { return edge.first == name; }));
  trees.emplace_back("random", randomForest(42, {40, 120, 60}));
  trees.emplace_back("few_shot", levelTree({1, 20}, {400, 20}));
  trees.emplace_back("speculative", speculativeTree(400, 32, 1));
  trees.emplace_back("reasoning", levelTree({1, 10, 10}, {100, 30, 10}));
  trees.emplace_back("binary", levelTree({1, 2, 4, 8, 16, 32, 64}, {16, 16, 16, 16, 16, 16, 16}));
  trees.emplace_back("tapering", levelTree({1, 4, 8, 32}, {256, 128, 64, 16}));
  trees.emplace_back("long_prompt", levelTree({1, 3}, {2100, 33}));
  trees.emplace_back("no_sharing", levelTree({16}, {260}));
  return trees;
}

std::vector<NamedTree> benchTrees() {
  std::vector<NamedTree> trees;
  for (int branches : {20, 30, 50})
    trees.emplace_back("FS_b" + std::to_string(branches), levelTree({1, branches}, {4000, 200}));
  for (int nodes : {32, 64, 128, 256})
    trees.emplace_back("SP_t" + std::to_string(nodes), speculativeTree(4000, nodes, 1));
  trees.emplace_back("RS_3lvl", levelTree({1, 10, 10}, {1000, 300, 100}));
  trees.emplace_back("F9_01", levelTree({1, 2, 64}, {8, 256, 32}));
  trees.emplace_back("F9_02", levelTree({1, 4, 256}, {8, 256, 32}));
  trees.emplace_back("F9_03", levelTree({1, 4, 8, 256}, {8, 256, 256, 32}));
  trees.emplace_back("F9_04", levelTree({1, 256}, {256, 32}));
  trees.emplace_back("F9_05", levelTree({1, 1024}, {2048, 32}));
  trees.emplace_back("F9_06", levelTree({1, 16, 64}, {1024, 256, 32}));
  trees.emplace_back("F9_07", levelTree({1, 4, 16, 512}, {1024, 256, 128, 32}));
  trees.emplace_back("F9_08", levelTree({1, 4, 16, 64, 256, 1024}, {256, 8, 256, 64, 32, 256}));
  trees.emplace_back("F9_09", levelTree({1, 10}, {4000, 400}));
  trees.emplace_back("F9_10",
                     levelTree({1, 2, 4, 8, 16, 32, 64, 128, 1024}, {16, 16, 16, 16, 16, 16, 16, 16, 16}));
  trees.emplace_back("F9_11",
                     levelTree({1, 2, 4, 8, 16, 32, 64, 128, 1024}, {256, 128, 64, 16, 16, 16, 16, 16, 16}));
  trees.emplace_back("F9_12", levelTree({1, 8, 16, 32, 64, 128, 1024}, {256, 128, 64, 16, 16, 16, 16}));
  trees.emplace_back("flat_256x1024", levelTree({256}, {1024}));
  trees.emplace_back("flat_8x32768", levelTree({8}, {32768}));
  return trees;
}

} // namespace deft::test
