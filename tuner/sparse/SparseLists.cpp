#include "tuner/sparse/SparseLists.h"

#include <algorithm>
#include <cstdint>

namespace deft::sparse {

namespace {

constexpr int kQueries[] = {1, 2, 4, 8, 16, 32, 64, 3, 6, 12, 24, 48};
/// Tokens of a path per token of its list: the ratio of a long context to a budget, less if necessary.
constexpr int kMostPath = 8, kLeastPath = 2;
/// For K and V together.
constexpr std::int64_t kSomeBytes = 2'000'000'000, kMostBytes = 5'000'000'000;

std::int64_t bytesOfToken(const spec::Variant &variant) {
  return std::int64_t{variant.kvHeads} * static_cast<std::int64_t>(variant.tensors.cacheBytes());
}

} // namespace

int pathTokens(const spec::Variant &variant, const Lists &lists) {
  const std::int64_t some = kSomeBytes / (bytesOfToken(variant) * lists.queries);
  const std::int64_t budget = lists.budget;
  return static_cast<int>(std::min<std::int64_t>(std::clamp(some, kLeastPath * budget, kMostPath * budget),
                                                 tree::KvTree::kMaxTokens / 2));
}

std::vector<Lists> listsOf(const spec::Variant &variant) {
  std::vector<Lists> all;
  if (!variant.select)
    return all;
  for (const int queries : kQueries)
    for (const int budget : variant.select->budget.values) {
      const Lists lists{budget, queries};
      if (bytesOfToken(variant) * queries * pathTokens(variant, lists) <= kMostBytes)
        all.push_back(lists);
    }
  return all;
}

support::Result<tree::KvTree> treeOf(const spec::Variant &variant, const Lists &lists) {
  tree::KvTree tree;
  for (int query = 0; query < lists.queries; ++query) {
    const auto node = tree.addNode(-1, pathTokens(variant, lists));
    if (!node)
      return node.error();
    if (auto added = tree.addQuery(*node); !added)
      return added.error();
  }
  return tree;
}

} // namespace deft::sparse
