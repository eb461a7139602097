#include "tuner/measure/Work.h"

#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/SizedParams.h"

#include <algorithm>

namespace deft::measure {

using support::Result;

namespace {

/// For K and V together. Classes that need a larger cache get their own one.
constexpr double kMostSharedBytes = 8e9;

Result<std::vector<tree::KvTree>> place(const Work &work, const ClassTrees &classTrees, int begin) {
  std::vector<tree::KvTree> trees = classTrees.trees;
  for (tree::KvTree &tree : trees) {
    const auto placed =
        tree::placeInCache(tree, {work.variant.cache.pageSize, tree::PlacementOrder::InOrder, 0, 0});
    if (!placed)
      return placed.error();
    for (int node = tree.firstRoot(); begin > 0 && node >= 0; node = tree.nextInPreorder(node))
      if (auto moved = tree.place(node, tree.nodes()[static_cast<std::size_t>(node)].location + begin);
          !moved)
        return moved.error();
  }
  return trees;
}

} // namespace

CacheSize CacheSize::of(const std::vector<tree::KvTree> &trees) {
  CacheSize size;
  for (const tree::KvTree &tree : trees)
    size = size.orMore({static_cast<int>(tree.tokens()), static_cast<int>(tree.queries().size())});
  return size;
}

CacheSize CacheSize::orMore(const CacheSize &other) const {
  return {std::max(tokens, other.tokens), std::max(queries, other.queries)};
}

Result<ClassInputs> makeInputs(const Work &work, const ClassTrees &classTrees, const CacheSize &least) {
  const CacheSize size = CacheSize::of(classTrees.trees).orMore(least);
  // A tree of one node represents the cache: all of its slots get values, used or not.
  tree::KvTree pool;
  if (auto added = pool.addNode(-1, size.tokens); !added)
    return added.error();
  for (int i = 0; i < size.queries; ++i)
    if (auto added = pool.addQuery(0); !added)
      return added.error();
  if (auto fits = exec::checkSizedParams(work.variant, pool, work.params); !fits)
    return fits.error();
  auto placement = tree::placeInCache(pool, {work.variant.cache.pageSize, work.pages, work.seed, 0});
  if (!placement)
    return placement.error();
  ClassInputs made;
  made.begin = pool.nodes()[0].location; // with scattered pages there are gaps before nodes
  auto placed = place(work, classTrees, made.begin);
  if (!placed)
    return placed.error();
  made.trees = std::move(*placed);
  made.inputs = exec::makeRandomInputs(work.variant, pool, *placement, work.params, work.seed, work.threads);
  return made;
}

InputPool::InputPool(const Work &work) : work_(work) {
  const double tokenBytes = static_cast<double>(work.variant.kvHeads) * work.variant.tensors.cacheBytes();
  if (work.sharesCache)
    for (const ClassTrees &trees : work.classes)
      if (const CacheSize size = CacheSize::of(trees.trees); size.tokens * tokenBytes <= kMostSharedBytes)
        shared_ = shared_.orMore(size);
}

Result<bool> InputPool::open(const ClassTrees &trees) {
  const CacheSize own = CacheSize::of(trees.trees);
  const bool fits = own.tokens <= shared_.tokens && own.queries <= shared_.queries;
  if (fits && isShared_) {
    auto placed = place(work_, trees, made_.begin);
    if (!placed)
      return placed.error();
    made_.trees = std::move(*placed);
    return false;
  }
  isShared_ = false;
  made_ = {}; // before the next one is made, since both may be large
  auto made = makeInputs(work_, trees, fits ? shared_ : CacheSize{});
  if (!made)
    return made.error();
  made_ = std::move(*made);
  isShared_ = fits;
  return true;
}

} // namespace deft::measure
