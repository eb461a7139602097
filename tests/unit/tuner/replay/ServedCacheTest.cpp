#include "tuner/replay/ServedCache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace deft::replay {
namespace {

spec::Variant tinyVariant(int pageSize) {
  spec::Variant variant;
  variant.name = "tiny";
  variant.queryHeads = variant.kvHeads = 1;
  variant.tensors = spec::Tensors::alike(64);
  variant.cache.pageSize = pageSize;
  return variant;
}

/// Where each token of the tree lies in k, by node and place in the node; no two lie at one place.
std::vector<long long> elementsOf(const tree::KvTree &tree, const exec::Inputs &inputs, int pageSize) {
  std::vector<long long> elements;
  for (const tree::Node &node : tree.nodes())
    for (int t = 0; t < node.tokens; ++t)
      elements.push_back(inputs.keyAt(node.location + t, pageSize, 0));
  const std::set<long long> different(elements.begin(), elements.end());
  EXPECT_EQ(different.size(), elements.size());
  EXPECT_TRUE(elements.empty() || (*different.begin() >= 0 &&
                                   *different.rbegin() + 64 <= static_cast<long long>(inputs.k.size())));
  return elements;
}

TEST(ServedCacheTest, FollowsEveryWorkload) {
  const auto all = workload::list();
  ASSERT_TRUE(all);
  ASSERT_GE(all->size(), 8u);
  for (const workload::Description &description : *all)
    for (const int pageSize : {16, 0}) {
      SCOPED_TRACE(description.name + ", page size " + std::to_string(pageSize));
      auto steps = TreeSteps::ofWorkload(description.name, 7, "");
      ASSERT_TRUE(steps) << steps.error().message;
      const int count = std::min(steps->stepsLeft() + 1, 30);
      const spec::Variant variant = tinyVariant(pageSize);
      auto cache = ServedCache::open(
          *steps, count,
          {.pageSize = pageSize, .order = tree::PlacementOrder::Scattered, .seed = 3, .poolPages = 0});
      ASSERT_TRUE(cache) << cache.error().message;
      exec::Inputs inputs = cache->makeInputs(variant, {}, 1, 1);
      for (int i = 0; i < count; ++i) {
        if (i > 0) {
          const auto followed = cache->next(*steps, variant, inputs);
          ASSERT_TRUE(followed) << followed.error().message;
        }
        ASSERT_EQ(inputs.queryCount, static_cast<int>(steps->tree().queries().size()));
        ASSERT_LE(inputs.queryCount * 64u, inputs.q.size());
        ASSERT_EQ(cache->tree().queries(), steps->tree().queries());
        ASSERT_EQ(cache->tree().nodes().size(), steps->tree().nodes().size());
        for (std::size_t node = 0; node < steps->tree().nodes().size(); ++node)
          ASSERT_EQ(cache->tree().nodes()[node].tokens, steps->tree().nodes()[node].tokens);
        elementsOf(cache->tree(), inputs, pageSize);
      }
    }
}

/// What each token of a tree holds, followed edit by edit without any cache; -1: not looked at yet.
class Contents {
public:
  void follow(const std::vector<tree::TreeEdit> &edits) {
    for (const tree::TreeEdit &edit : edits)
      follow(edit);
  }
  /// Compares what is known with the cache, and notes the rest. Returns how many tokens were compared.
  int compare(const tree::KvTree &tree, const exec::Inputs &inputs, int pageSize) {
    int compared = 0;
    for (std::size_t node = 0; node < tree.nodes().size(); ++node)
      for (int t = 0; t < tree.nodes()[node].tokens; ++t) {
        int &known = tokens_[node][static_cast<std::size_t>(t)];
        const auto at = inputs.keyAt(tree.nodes()[node].location + t, pageSize, 0);
        const int found =
            inputs.k[static_cast<std::size_t>(at)] << 8 ^ inputs.v[static_cast<std::size_t>(at)];
        if (known >= 0) {
          EXPECT_EQ(found, known) << "token " << t << " of node " << node;
          ++compared;
        }
        known = found;
      }
    return compared;
  }

private:
  void follow(const tree::TreeEdit &edit) {
    using Kind = tree::TreeEdit::Kind;
    std::vector<int> accepted;
    if (edit.kind == Kind::Accept)
      for (int node = edit.value; node != edit.node;
           node = tree_.nodes()[static_cast<std::size_t>(node)].parent)
        accepted.insert(accepted.begin(), of(node).begin(), of(node).end());
    ASSERT_TRUE(tree::apply(edit, tree_));
    tokens_.resize(tree_.nodes().size());
    if (edit.kind == Kind::Split) {
      std::vector<int> &lower = of(edit.node);
      const auto cut = lower.begin() + edit.value;
      of(tree_.nodes()[static_cast<std::size_t>(edit.node)].parent).assign(lower.begin(), cut);
      lower.erase(lower.begin(), cut);
    }
    if (edit.kind == Kind::Accept)
      of(edit.node).insert(of(edit.node).end(), accepted.begin(), accepted.end());
    for (std::size_t node = 0; node < tokens_.size(); ++node)
      tokens_[node].resize(static_cast<std::size_t>(tree_.nodes()[node].tokens), -1);
  }
  std::vector<int> &of(int node) { return tokens_[static_cast<std::size_t>(node)]; }

  tree::KvTree tree_;
  std::vector<std::vector<int>> tokens_;
};

/// Wherever the pool moves a token, its values are with it.
TEST(ServedCacheTest, TokensKeepTheirValues) {
  for (const char *workload : {"beam_search:prompt=50", "random_forest", "reasoning", "token_tree"})
    for (const int pageSize : {16, 0}) {
      SCOPED_TRACE(std::string(workload) + ", page size " + std::to_string(pageSize));
      auto steps = TreeSteps::ofWorkload(workload, 5, "");
      ASSERT_TRUE(steps) << steps.error().message;
      const spec::Variant variant = tinyVariant(pageSize);
      const int count = std::min(steps->stepsLeft() + 1, 25);
      auto cache = ServedCache::open(*steps, count, {.pageSize = pageSize});
      ASSERT_TRUE(cache) << cache.error().message;
      exec::Inputs inputs = cache->makeInputs(variant, {}, 1, 1);
      Contents contents;
      contents.follow(steps->edits());
      int compared = contents.compare(cache->tree(), inputs, pageSize);
      for (int i = 1; i < count; ++i) {
        ASSERT_TRUE(cache->next(*steps, variant, inputs));
        contents.follow(steps->edits());
        compared += contents.compare(cache->tree(), inputs, pageSize);
      }
      EXPECT_GT(compared, 1000);
    }
}

TEST(ServedCacheTest, BranchesThatOnlyGrowMoveOnce) {
  auto steps = TreeSteps::ofWorkload("few_shot:prompt=200,branches=4", 1, "");
  ASSERT_TRUE(steps) << steps.error().message;
  const spec::Variant variant = tinyVariant(16);
  auto cache = ServedCache::open(*steps, 60, {.pageSize = 16});
  ASSERT_TRUE(cache) << cache.error().message;
  exec::Inputs inputs = cache->makeInputs(variant, {}, 1, 1);
  int moves = 0;
  for (int i = 1; i < 60; ++i) {
    const std::uint64_t before = cache->tree().structureGeneration();
    ASSERT_TRUE(cache->next(*steps, variant, inputs));
    moves += cache->tree().structureGeneration() != before;
  }
  EXPECT_LE(moves, 1);
}

} // namespace
} // namespace deft::replay
