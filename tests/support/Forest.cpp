#include "tests/support/Forest.h"

#include <algorithm>
#include <random>

namespace deft::test {

using tree::KvTree;

namespace {

/// The calls below are right by construction; value() throws if one is not.
int node(KvTree &tree, int parent, int tokens) { return tree.addNode(parent, tokens).value(); }
void query(KvTree &tree, int node) { (void)tree.addQuery(node).value(); }
void query(KvTree &tree, int node, int position) { (void)tree.addQuery(node, position).value(); }

} // namespace

KvTree randomForest(std::uint64_t seed, const ForestLimits &limits) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  KvTree tree;
  const int nodes = 1 + below(limits.nodes);
  // Three habits: any parent, mostly the last node (deep), mostly an early node (wide).
  const int habit = below(3);
  for (int i = 0; i < nodes; ++i) {
    int parent = i == 0 ? -1 : below(i);
    if (i > 0 && habit == 1 && below(4) > 0)
      parent = i - 1;
    if (i > 0 && habit == 2 && below(4) > 0)
      parent = below(std::min(i, 3));
    if (below(10) == 0)
      parent = -1;
    const int size = below(6); // empty, one token, a page more or less, or anything
    const int tokens = size == 0 ? 0 : size == 1 ? 1 : size == 2 ? 15 + below(3) : 1 + below(limits.tokens);
    node(tree, parent, tokens);
  }
  const int queries = below(limits.queries + 1);
  for (int i = 0; i < queries; ++i) {
    const int at = below(nodes);
    if (below(3) == 0)
      query(tree, at, below(tree.nodes()[at].tokens + 1));
    else
      query(tree, at);
  }
  return tree;
}

KvTree causalForest(std::uint64_t seed, const ForestLimits &limits) {
  KvTree tree = randomForest(seed, limits);
  std::mt19937_64 random(seed + 77);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  std::vector<tree::Query> queries = tree.queries();
  if (below(3) == 0) // stretches alone
    queries.clear();
  for (int stretch = 0, stretches = 1 + below(4); stretch < stretches; ++stretch) {
    const int at = below(static_cast<int>(tree.nodes().size())), tokens = tree.nodes()[at].tokens;
    if (tokens == 0)
      continue;
    const int end = below(2) == 0 ? tokens : 1 + below(tokens), count = below(3) == 0 ? end : 1 + below(end);
    const std::size_t first = queries.size();
    for (int seen = end - count + 1; seen <= end; ++seen)
      queries.push_back({at, seen == tokens && below(2) == 0 ? tree::Query::kWhole : seen});
    if (below(3) == 0)
      std::shuffle(queries.begin() + static_cast<std::ptrdiff_t>(first), queries.end(), random);
  }
  if (below(4) == 0)
    std::shuffle(queries.begin(), queries.end(), random);
  (void)tree.setQueries(queries);
  return tree;
}

KvTree levelTree(const std::vector<int> &nodesPerLevel, const std::vector<int> &tokensPerNode) {
  KvTree tree;
  int levelBegin = 0;
  for (std::size_t level = 0; level < nodesPerLevel.size(); ++level) {
    const int above = levelBegin;
    levelBegin = static_cast<int>(tree.nodes().size());
    for (int i = 0; i < nodesPerLevel[level]; ++i) {
      // Spread evenly over the level above.
      const long long share =
          level == 0 ? 0 : static_cast<long long>(i) * nodesPerLevel[level - 1] / nodesPerLevel[level];
      node(tree, level == 0 ? -1 : above + static_cast<int>(share), tokensPerNode[level]);
    }
  }
  for (int i = levelBegin; i < static_cast<int>(tree.nodes().size()); ++i)
    query(tree, i);
  return tree;
}

std::vector<std::pair<std::string, KvTree>> edgeTrees() {
  std::vector<std::pair<std::string, KvTree>> trees;
  const auto add = [&](const char *name) -> KvTree & { return trees.emplace_back(name, KvTree()).second; };

  add("nothing");
  node(add("no_query"), -1, 20);
  {
    KvTree &t = add("one_token");
    query(t, node(t, -1, 1));
  }
  {
    KvTree &t = add("empty_path");
    query(t, node(t, -1, 0));
    query(t, node(t, -1, 9), 0);
  }
  {
    KvTree &t = add("one_leaf");
    query(t, node(t, -1, 333));
  }
  {
    KvTree &t = add("empty_nodes_between");
    const int root = node(t, -1, 40);
    const int hole = node(t, node(t, root, 0), 0);
    query(t, node(t, hole, 7));
    query(t, hole);
    query(t, root);
  }
  {
    KvTree &t = add("deep_chain");
    int last = -1;
    for (int i = 0; i < 200; ++i)
      last = node(t, last, 1 + i % 3);
    query(t, last);
    query(t, last / 2);
  }
  {
    KvTree &t = add("wide_fan");
    const int root = node(t, -1, 50);
    for (int i = 0; i < 150; ++i)
      query(t, node(t, root, 1 + i % 5));
  }
  {
    KvTree &t = add("several_roots");
    for (int i = 0; i < 9; ++i) {
      const int root = node(t, -1, 30 * i);
      query(t, node(t, root, 10));
      query(t, root, 0); // the first root's sees nothing, between queries that see something
    }
  }
  {
    KvTree &t = add("queries_inside_nodes");
    const int root = node(t, -1, 100);
    const int leaf = node(t, root, 35);
    for (int position : {100, 0, 50, 50, 1, 99})
      query(t, root, position);
    for (int position : {35, 0, 16, 17})
      query(t, leaf, position);
  }
  {
    KvTree &t = add("token_tree"); // speculative decoding: a prompt and nodes of one token
    std::vector<int> nodes = {node(t, -1, 130)};
    for (int i = 1; i < 40; ++i)
      nodes.push_back(node(t, nodes[i / 3], 1));
    for (int i = 1; i < 40; ++i)
      query(t, nodes[i]);
  }
  for (int around : {-1, 0, 1}) {
    KvTree &t = add(around < 0 ? "page_minus_one" : around == 0 ? "page" : "page_plus_one");
    const int root = node(t, -1, 16 + around);
    query(t, node(t, root, 64 + around));
    query(t, node(t, root, 128 + around));
  }
  {
    KvTree &t = add("same_query_often");
    const int root = node(t, -1, 70);
    for (int i = 0; i < 33; ++i)
      query(t, root);
  }
  {
    KvTree &t = add("unread_branches"); // nodes that nobody sees, before, between and after
    const int root = node(t, -1, 64);
    node(t, root, 500);
    query(t, node(t, root, 20));
    node(t, root, 500);
    query(t, node(t, root, 20));
    node(t, -1, 500);
  }
  {
    KvTree &t = add("prefill");
    const int prompt = node(t, -1, 70);
    for (int seen = 1; seen <= 70; ++seen)
      query(t, prompt, seen);
  }
  {
    KvTree &t = add("appends_and_decodes"); // to a shared prompt, one of them over two nodes
    const int root = node(t, -1, 100), turn = node(t, root, 40), last = node(t, turn, 33);
    for (int seen = 11; seen <= 40; ++seen)
      query(t, turn, seen);
    for (int seen = 1; seen < 33; ++seen)
      query(t, last, seen);
    query(t, last);
    for (int i = 0; i < 5; ++i)
      query(t, node(t, root, 10 + i));
    const int other = node(t, root, 50);
    for (int seen = 31; seen < 50; ++seen)
      query(t, other, seen);
    query(t, other);
  }
  trees.emplace_back("levels", levelTree({1, 4, 16}, {96, 33, 8}));
  trees.emplace_back("requests_without_sharing", levelTree({12}, {140}));
  return trees;
}

} // namespace deft::test
