#include "tuner/measure/Work.h"

#include "runtime/exec/RandomInputs.h"

#include <algorithm>

namespace deft::measure {

support::Result<ClassInputs> makeInputs(const Work &work, const ClassTrees &classTrees) {
  ClassInputs made;
  made.trees = classTrees.trees;
  const int pageSize = exec::pageSizeOf(work.variant);
  std::size_t tokens = 0, queries = 0;
  for (tree::KvTree &tree : made.trees) {
    if (const auto placed = tree::placeInCache(tree, {pageSize, tree::PlacementOrder::InOrder, 0, 0});
        !placed)
      return placed.error();
    tokens = std::max(tokens, static_cast<std::size_t>(tree.tokens()));
    queries = std::max(queries, tree.queries().size());
  }
  // A tree of one node stands for the cache: all of its slots get values, whoever owns them.
  tree::KvTree pool;
  if (auto added = pool.addNode(-1, static_cast<int>(tokens)); !added)
    return added.error();
  for (std::size_t i = 0; i < queries; ++i)
    if (auto added = pool.addQuery(0); !added)
      return added.error();
  auto placement = tree::placeInCache(pool, {pageSize, work.pages, work.seed, 0});
  if (!placement)
    return placement.error();
  // Scattering puts gaps before nodes; the trees lie from the first token on.
  if (const int begin = pool.nodes()[0].location; begin > 0)
    for (tree::KvTree &tree : made.trees)
      for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
        if (auto placed = tree.place(node, tree.nodes()[static_cast<std::size_t>(node)].location + begin);
            !placed)
          return placed.error();
  made.inputs = exec::makeRandomInputs(work.variant, pool, *placement, work.params, work.seed, work.threads);
  return made;
}

} // namespace deft::measure
