#include "tests/gpu/random/Trees.h"

#include "tests/support/Forest.h"

#include <algorithm>
#include <vector>

namespace deft::gpu_test {

using tree::KvTree;

namespace {

/// Calls that are right by construction; value() throws if one is not.
int node(KvTree &tree, int parent, int tokens) { return tree.addNode(parent, tokens).value(); }
void query(KvTree &tree, int node) { (void)tree.addQuery(node).value(); }
void query(KvTree &tree, int node, int position) { (void)tree.addQuery(node, position).value(); }

KvTree deepChain(Random &random) {
  KvTree tree;
  const int depth = random.between(20, 400);
  int last = -1;
  for (int i = 0; i < depth; ++i) {
    last = node(tree, last, random.oneIn(9) ? 0 : random.between(1, 6));
    if (random.oneIn(15))
      query(tree, last);
    if (random.oneIn(12)) // a twig beside the chain
      query(tree, node(tree, last, random.between(1, 40)));
  }
  query(tree, last);
  return tree;
}

KvTree wideFan(Random &random) {
  KvTree tree;
  const int root = node(tree, -1, random.of({0, 1, 50, 128, 300}));
  const int leaves = random.between(40, 400);
  for (int i = 0; i < leaves; ++i)
    query(tree, node(tree, root, random.between(0, 12)));
  return tree;
}

/// More items than blocks: wide ones, of which the last tokens are for the last queries alone, then small
/// ones.
KvTree manyFans(Random &random) {
  KvTree tree;
  const int fans = random.between(9, 24), leaves = random.of({16, 32, 32, 33});
  for (int f = 0; f < fans; ++f) {
    const int root = node(tree, -1, random.of({1, 64, 100}));
    for (int i = 0; i < leaves; ++i)
      query(tree, node(tree, root, random.between(4, 12)));
  }
  const int small = random.between(1, 3);
  for (int i = 0; i < small; ++i)
    query(tree, node(tree, -1, random.between(1, 100)));
  return tree;
}

KvTree sharedPrompt(Random &random) {
  KvTree tree;
  const int roots = random.between(1, 3);
  for (int r = 0; r < roots; ++r) {
    const int root = node(tree, -1, random.between(100, 1500));
    const int branches = random.between(1, 24);
    for (int b = 0; b < branches; ++b)
      query(tree, node(tree, root, random.between(1, 300)));
  }
  return tree;
}

/// Guessed tokens below a prompt, each a node of one token and a query.
KvTree tokenTree(Random &random, int mostQueries) {
  KvTree tree;
  const int prompt = node(tree, -1, random.between(1, 400));
  const int tokens = random.oneIn(2) ? mostQueries : random.between(1, mostQueries);
  std::vector<int> nodes = {prompt};
  const bool isDeep = random.oneIn(3);
  for (int i = 0; i < tokens; ++i) {
    const int count = static_cast<int>(nodes.size());
    const int parent = nodes[static_cast<std::size_t>(isDeep ? std::max(0, count - 1 - random.below(4))
                                                             : random.below(std::min(count, 64)))];
    nodes.push_back(node(tree, parent, 1));
    query(tree, nodes.back());
  }
  return tree;
}

/// Requests that share nothing, some short, some empty.
KvTree flat(Random &random) {
  KvTree tree;
  const int requests = random.between(1, 40);
  for (int i = 0; i < requests; ++i)
    query(tree, node(tree, -1, random.oneIn(6) ? 0 : random.between(1, 600)));
  return tree;
}

/// Ends of nodes and of queries one before, at and after the ends of pages and tiles.
KvTree boundaries(Random &random, int pageSize) {
  KvTree tree;
  const auto edge = [&] {
    const int unit = random.of({std::max(pageSize, 1), 16, 64, 128});
    return std::max(0, unit * random.between(1, 3) + random.between(-1, 1));
  };
  std::vector<int> nodes;
  const int count = random.between(2, 12);
  for (int i = 0; i < count; ++i) {
    nodes.push_back(node(tree, i == 0 ? -1 : nodes[static_cast<std::size_t>(random.below(i))], edge()));
    const int tokens = tree.nodes()[static_cast<std::size_t>(nodes.back())].tokens;
    query(tree, nodes.back());
    query(tree, nodes.back(), std::min(tokens, edge()));
    if (random.oneIn(3))
      query(tree, nodes.back(), 0);
  }
  return tree;
}

} // namespace

CaseTree randomTree(Random &random, int index, int pageSize, int mostQueries) {
  switch (index % 12) {
  case 0:
  case 1:
    return {"forest", test::randomForest(random.seed())};
  case 2:
    return {"forest", test::randomForest(random.seed(), {120, random.of({4, 20, 300}), 200})};
  case 3:
    return {"deep chain", deepChain(random)};
  case 4:
    return {"wide fan", wideFan(random)};
  case 5:
    return {"shared prompt", sharedPrompt(random)};
  case 6:
    return {"token tree", tokenTree(random, random.of({16, 64, 256, mostQueries}))};
  case 7:
    return {"boundaries", boundaries(random, pageSize)};
  case 8:
    return {"no sharing", flat(random)};
  case 9:
    return {"many fans", manyFans(random)};
  case 10:
    return {"causal",
            test::causalForest(random.seed(), {30, std::min(mostQueries, random.of({40, 150, 600})), 30})};
  default: {
    auto edges = test::edgeTrees();
    auto &[name, tree] = edges[static_cast<std::size_t>(random.below(static_cast<int>(edges.size())))];
    return {name, std::move(tree)};
  }
  }
}

} // namespace deft::gpu_test
