#include "runtime/plan/EdgeBounds.h"

#include "tests/unit/runtime/plan/PlanTesting.h"

#include <set>

namespace deft::plan {
namespace {

using Edge = EdgeBounds::Edge;

/// The bounds of a tree under tiles of 64 rows and no chunks.
struct Bounded {
  TreeView view;
  CostModel model;
  GroupPrices prices;
  EdgeBounds bounds;

  explicit Bounded(const tree::KvTree &tree, int ratio = 4) {
    view.build(tree);
    model.set({ratio, 8}, makeConfig(0, {64, 16}), 132);
    prices.set(model, 0);
    bounds.find(view, prices);
  }
};

TEST(EdgeBoundsTest, LongPromptsOfManyStandApartAndShortPathsAreJoined) {
  const Bounded apart(test::levelTree({1, 40}, {8000, 200}));
  for (int place = 0; place < apart.view.placeCount(); ++place)
    EXPECT_EQ(apart.bounds.edge(place), Edge::Apart) << place;
  EXPECT_TRUE(apart.bounds.linked().empty());

  const Bounded together(test::levelTree({1, 3, 6}, {4, 2, 1}));
  EXPECT_EQ(together.bounds.edge(0), Edge::Apart) << "a root has no parent";
  for (int place = 1; place < together.view.placeCount(); ++place)
    EXPECT_EQ(together.bounds.edge(place), Edge::Joined) << place;
  EXPECT_TRUE(together.bounds.open().empty());
  std::vector<char> joined;
  together.bounds.writeJoined(joined);
  EXPECT_EQ(std::count(joined.begin(), joined.end(), 1), 9);
}

TEST(EdgeBoundsTest, WhatNobodyReadsStandsApart) {
  tree::KvTree tree;
  const int root = tree.addNode(-1, 8).value(), read = tree.addNode(root, 8).value();
  ASSERT_TRUE(tree.addNode(root, 8)); // nobody's
  ASSERT_TRUE(tree.addQuery(read));
  const Bounded bounded(tree);
  for (int place = 0; place < 3; ++place) {
    const bool isRead = bounded.view.places[place].node == read;
    EXPECT_EQ(bounded.bounds.edge(place), isRead ? Edge::Joined : Edge::Apart);
    EXPECT_EQ(bounded.bounds.readers(place), isRead || place == 0 ? 1 : 0);
  }
}

/// What follows from the edges, for forests of every shape.
TEST(EdgeBoundsTest, ListsAndRegionsFollowFromTheEdges) {
  int opened = 0, alike = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Bounded one(test::randomForest(seed, {40, seed % 2 == 0 ? 90 : 2000, 60}), seed % 3 == 0 ? 1 : 8);
    const EdgeBounds &bounds = one.bounds;
    std::vector<int> linked;
    std::set<int> open;
    for (int p = 0; p < one.view.placeCount(); ++p) {
      const Place &place = one.view.places[p];
      int readers = 0; // of the place and all below
      for (int below = p; below < place.subtreeEnd; ++below)
        readers += one.view.places[below].ownEnd - one.view.places[below].ownBegin;
      ASSERT_EQ(bounds.readers(p), readers);
      const bool isApart = bounds.edge(p) == Edge::Apart;
      EXPECT_TRUE(isApart || (place.parent >= 0 && readers > 0));
      EXPECT_EQ(bounds.top(p), isApart ? p : bounds.top(place.parent));
      bool hasOpenChild = false;
      for (int child = p + 1; child < place.subtreeEnd; child = one.view.places[child].subtreeEnd)
        hasOpenChild |= bounds.edge(child) == Edge::Open;
      EXPECT_EQ(bounds.hasOpenChild(p), hasOpenChild);
      if (!isApart)
        linked.push_back(p);
      if (hasOpenChild || bounds.edge(p) == Edge::Open)
        open.insert(p);
    }
    EXPECT_EQ(bounds.linked(), linked);
    EXPECT_EQ(std::set<int>(bounds.open().begin(), bounds.open().end()), open);
    EXPECT_EQ(bounds.open().size(), open.size()) << "none twice";
    std::set<int> before;
    for (const int p : bounds.open()) {
      EXPECT_TRUE(bounds.edge(p) != Edge::Open || before.contains(one.view.places[p].parent));
      before.insert(p);
    }
    opened += open.empty() ? 0 : 1;
    for (std::size_t i = 0; i < bounds.open().size(); ++i)
      alike += bounds.isLikeNext(one.view, i) ? 1 : 0;
  }
  EXPECT_GT(opened, 40);
  RecordProperty("alike", alike);
}

/// Requests of one prompt, each a node of two leaves: neighbours of the same lengths are weighed once.
TEST(EdgeBoundsTest, OnlySubtreesOfTheSameTokensAndReadersAreAlike) {
  const auto alike = [](int otherTokens, int otherQueries) {
    tree::KvTree tree;
    const int root = tree.addNode(-1, 64).value();
    for (int request = 0; request < 4; ++request) {
      const int node = tree.addNode(root, 24).value();
      for (int leaf = 0; leaf < 2; ++leaf) {
        const bool isOther = request == 2 && leaf == 1;
        const int below = tree.addNode(node, isOther ? otherTokens : 40).value();
        for (int query = 0; query < (isOther ? otherQueries : 1); ++query)
          EXPECT_TRUE(tree.addQuery(below));
      }
    }
    const Bounded one(tree, 1);
    std::vector<int> places;
    for (std::size_t i = 0; i < one.bounds.open().size(); ++i)
      if (const int p = one.bounds.open()[i];
          one.bounds.isLikeNext(one.view, i) && one.view.places[p].depth == 1)
        places.push_back(p);
    return places;
  };
  using testing::ElementsAre;
  EXPECT_THAT(alike(40, 1), ElementsAre(1, 4, 7));
  EXPECT_THAT(alike(41, 1), ElementsAre(1));
  EXPECT_THAT(alike(40, 2), ElementsAre(1));
}

} // namespace
} // namespace deft::plan
