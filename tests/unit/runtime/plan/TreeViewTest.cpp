#include "runtime/plan/TreeView.h"
#include "tests/support/Forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tree::KvTree;

std::vector<int> nodesOf(const TreeView &view) {
  std::vector<int> nodes;
  for (const Place &place : view.places)
    nodes.push_back(place.node);
  return nodes;
}

/// Root 0 with children 1, 2, 3; node 4 below 1.
KvTree smallTree() {
  KvTree tree;
  for (const auto &[parent, tokens] : {std::pair{-1, 10}, {0, 5}, {0, 6}, {0, 7}, {1, 3}})
    (void)tree.addNode(parent, tokens).value();
  return tree;
}

TEST(TreeViewTest, PlacesAreInPreorder) {
  TreeView view;
  view.build(smallTree());
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 1, 4, 2, 3));
  EXPECT_EQ(view.places[1].subtreeEnd, 3);
  EXPECT_EQ(view.places[2].parent, 1);
}

/// Against the paths themselves, node by node.
TEST(TreeViewTest, NeighboursShareTheTokensOfBothPaths) {
  TreeView view;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::ForestLimits limits{60, 50, 40};
    const KvTree tree = seed % 3 == 0 ? test::causalForest(seed, limits) : test::randomForest(seed, limits);
    view.build(tree);
    ASSERT_EQ(view.shared.size(), tree.queries().size() + 1);
    EXPECT_EQ(view.shared.back(), 0);
    long long paths = 0, read = 0;
    for (int i = 0; i < view.queryCount(); ++i) {
      const tree::Query &query = tree.queries()[view.callerIndex[i]];
      int shared = 0;
      if (i > 0) {
        const tree::Query &before = tree.queries()[view.callerIndex[i - 1]];
        int a = query.node, b = before.node; // up to where the two meet
        const auto depthOf = [&](int node) { return node < 0 ? -1 : tree.nodes()[node].depth; };
        while (a != b) {
          int &deeper = depthOf(a) >= depthOf(b) ? a : b;
          deeper = tree.nodes()[deeper].parent;
        }
        if (a >= 0)
          shared = std::min({tree.nodes()[a].position + tree.nodes()[a].tokens, tree.pathTokens(query),
                             tree.pathTokens(before)});
      }
      EXPECT_EQ(view.shared[i], shared) << "query " << i;
      paths += tree.pathTokens(query);
      read += tree.pathTokens(query) - shared;
    }
    EXPECT_EQ(view.pathTokens, paths);
    EXPECT_EQ(view.readTokens, read);
  }
}

TEST(TreeViewTest, QueriesOfMarkedChildrenComeLast) {
  KvTree tree = smallTree();
  (void)tree.addNode(-1, 1);
  for (int node : {0, 1, 2, 3, 4, 5})
    (void)tree.addQuery(node);
  TreeView view;
  view.build(tree);
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 1, 4, 2, 3, 5));
  view.putLast({1}); // the child 1 after its siblings
  EXPECT_THAT(view.callerIndex, ElementsAre(0, 2, 3, 1, 4, 5));
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 1, 4, 2, 3, 5));
  EXPECT_EQ(view.places[0].firstEnd, 3);
  view.build(tree);
  view.putLast({1, 4});
  EXPECT_THAT(view.callerIndex, ElementsAre(0, 2, 1, 4, 3, 5)); // among the marked the order stays
  EXPECT_EQ(view.places[0].firstEnd, 2);
  EXPECT_TRUE(view.isLast(1) && !view.isLast(2));
}

/// Readers of every stretch are an interval as before, of the same queries.
TEST(TreeViewTest, MovedQueriesSeeWhatTheySaw) {
  TreeView view, moved;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::ForestLimits limits{60, 50, 40};
    const KvTree tree = seed % 3 == 0 ? test::causalForest(seed, limits) : test::randomForest(seed, limits);
    view.build(tree);
    moved.build(tree);
    std::vector<int> last;
    for (int p = 0; p < view.placeCount(); ++p)
      if (view.places[p].parent >= 0 && (seed >> p % 9 & 1) != (p % 3 == 0))
        last.push_back(p);
    moved.putLast(last);
    const auto callers = [](const TreeView &of, int begin, int end) {
      std::vector<int> indices(of.callerIndex.begin() + begin, of.callerIndex.begin() + end);
      std::sort(indices.begin(), indices.end());
      return indices;
    };
    for (int p = 0; p < view.placeCount(); ++p) {
      const Place &a = moved.places[p], &b = view.places[p];
      ASSERT_EQ(callers(moved, a.ownBegin, a.ownEnd), callers(view, b.ownBegin, b.ownEnd));
      ASSERT_EQ(callers(moved, a.ownBegin, a.readersEnd), callers(view, b.ownBegin, b.readersEnd));
      for (int s = b.segmentBegin; s < b.segmentEnd; ++s)
        ASSERT_EQ(callers(moved, moved.segments[s].queryBegin, moved.segments[s].queryEnd),
                  callers(view, view.segments[s].queryBegin, view.segments[s].queryEnd));
      for (int i = a.ownBegin; i < a.ownEnd; ++i) {
        const tree::Query &query = tree.queries()[moved.callerIndex[i]];
        EXPECT_EQ(a.node, query.node);
        EXPECT_EQ(moved.seen(a, i), tree.seenTokens(query));
      }
      if (b.leaf >= 0) {
        const Plan::Leaf &after = moved.leaves[b.leaf], &before = view.leaves[b.leaf];
        EXPECT_EQ(callers(moved, after.followBegin, after.followEnd),
                  callers(view, before.followBegin, before.followEnd));
      }
      // Those of marked siblings stand behind the others'.
      const int next = a.subtreeEnd;
      if (next < moved.placeCount() && moved.places[next].parent == a.parent && !moved.isLast(p) &&
          moved.isLast(next)) {
        EXPECT_LE(a.readersEnd, moved.places[next].ownBegin);
      }
      // What is before the end of the first ones is read by nobody below a marked child.
      if (moved.isLast(p) && a.ownBegin < a.readersEnd) {
        EXPECT_GE(a.ownBegin, moved.places[a.parent].firstEnd);
      }
    }
    for (int i = 0; i < moved.queryCount(); ++i) {
      const tree::Query &query = tree.queries()[moved.callerIndex[i]];
      EXPECT_EQ(moved.queryPos[i], tree.pathTokens(query) - 1);
    }
  }
}

TEST(TreeViewTest, DeadNodesHaveNoPlace) {
  KvTree tree = smallTree();
  ASSERT_TRUE(tree.prune(1));
  TreeView view;
  view.build(tree);
  EXPECT_THAT(nodesOf(view), ElementsAre(0, 2, 3));
}

TEST(TreeViewTest, QueriesGoByPlaceThenTokensSeenThenCallersIndex) {
  KvTree tree = smallTree();
  (void)tree.addQuery(3);
  (void)tree.addQuery(1);
  (void)tree.addQuery(1, 2);
  (void)tree.addQuery(1);
  (void)tree.addQuery(4, 0);
  TreeView view;
  view.build(tree);
  EXPECT_THAT(view.callerIndex, ElementsAre(2, 1, 3, 4, 0));
  EXPECT_EQ(view.seen(view.places[1], 0), 2);
  EXPECT_THAT(view.queryPos, ElementsAre(11, 14, 14, 14, 16));
  EXPECT_EQ(view.places[1].ownBegin, 0);
  EXPECT_EQ(view.places[1].ownEnd, 3);
  EXPECT_EQ(view.places[1].readersEnd, 4);
}

TEST(TreeViewTest, SegmentsAreCutWhereQueriesEndAndEndWhereNobodyReadsOn) {
  KvTree tree;
  (void)tree.addNode(-1, 100);
  (void)tree.addNode(0, 8);
  (void)tree.addNode(0, 0);
  for (int position : {30, 0, 30, 60})
    (void)tree.addQuery(0, position);
  TreeView view;
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 30, 1, 4}, Segment{0, 30, 30, 3, 4}));
  EXPECT_EQ(view.leafCount(), 0); // nobody reads the leaves

  (void)tree.addQuery(1);
  (void)tree.addQuery(2);
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 30, 1, 6}, Segment{0, 30, 30, 3, 6},
                                         Segment{0, 60, 40, 4, 6}, Segment{1, 0, 8, 4, 5}));
  EXPECT_EQ(view.leafCount(), 2);
  EXPECT_EQ(view.places[1].leaf, 0);
  EXPECT_EQ(view.places[2].leaf, 1);
}

TEST(TreeViewTest, QueriesAtConsecutiveTokensAreOneSegmentWithASlope) {
  KvTree tree;
  (void)tree.addNode(-1, 100);
  (void)tree.addNode(0, 8);
  for (int seen = 41; seen <= 60; ++seen)
    (void)tree.addQuery(0, seen);
  for (int seen = 1; seen < 8; ++seen)
    (void)tree.addQuery(1, seen);
  (void)tree.addQuery(1);
  TreeView view;
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 40, 0, 28}, Segment{0, 40, 20, 0, 28, 1},
                                         Segment{0, 60, 40, 20, 28}, Segment{1, 0, 8, 20, 28, 1}));
  EXPECT_EQ(view.leaves[0].canGrow, 0); // its last token is the last one of a stretch

  // In another order of the caller's, and beside others, it is the same stretch.
  std::vector<tree::Query> queries = tree.queries();
  std::reverse(queries.begin(), queries.end());
  queries.push_back({0, 100});
  ASSERT_TRUE(tree.setQueries(queries));
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 40, 0, 29}, Segment{0, 40, 20, 0, 29, 1},
                                         Segment{0, 60, 40, 20, 29}, Segment{1, 0, 8, 21, 29, 1}));
}

/// Of a handful of queries each has a segment, as has one that sees what another does.
TEST(TreeViewTest, FewQueriesAreNoSlope) {
  KvTree tree;
  (void)tree.addNode(-1, 10);
  for (int seen = 4; seen < 10; ++seen)
    (void)tree.addQuery(0, seen);
  (void)tree.addQuery(0);
  TreeView view;
  view.build(tree);
  EXPECT_EQ(view.segments.size(), 7U);
  for (const Segment &segment : view.segments)
    EXPECT_EQ(segment.slope, 0);
  EXPECT_EQ(view.leaves[0].canGrow, 1);
  (void)tree.addQuery(0, 3); // eight of them; their caller names the first one last
  view.build(tree);
  EXPECT_THAT(view.segments, ElementsAre(Segment{0, 0, 2, 0, 8}, Segment{0, 2, 8, 0, 8, 1}));
}

/// Token by token, of trees with queries in any order; after one that sees all comes one that sees nothing.
TEST(TreeViewTest, EachTokenIsSeenByWhoReachesIt) {
  TreeView view;
  int sloped = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    KvTree tree = test::causalForest(seed, {12, 60, 12});
    if (seed % 5 == 0) {
      std::vector<tree::Query> queries;
      for (int node = 0; node < static_cast<int>(tree.nodes().size()); ++node)
        for (int seen = -1; seen < tree.nodes()[node].tokens; ++seen)
          queries.push_back({node, seen});
      ASSERT_TRUE(tree.setQueries(queries));
    }
    view.build(tree);
    for (const Place &place : view.places)
      for (int token = 0; token < place.tokens; ++token) {
        int begin = -1, end = -1; // who reaches it: an interval, by what build() promises
        for (int q = place.ownBegin; q < place.readersEnd; ++q) {
          const tree::Query &query = tree.queries()[view.callerIndex[q]];
          if (query.node != place.node || tree.seenTokens(query) > token) {
            begin = begin < 0 ? q : begin;
            end = q + 1;
          }
        }
        int found = 0;
        for (int s = place.segmentBegin; s < place.segmentEnd; ++s) {
          const Segment &segment = view.segments[s];
          if (token < segment.begin || token >= segment.begin + segment.tokens)
            continue;
          ++found;
          ASSERT_EQ(segment.queryBegin + segment.slope * (token - segment.begin), begin);
          ASSERT_EQ(segment.queryEnd, end);
          sloped += segment.slope;
        }
        ASSERT_EQ(found, begin < 0 ? 0 : 1);
      }
  }
  EXPECT_GT(sloped, 5000);
}

TEST(TreeViewTest, NothingIsLeftOfTheLastTree) {
  TreeView view;
  view.build(test::randomForest(3));
  view.build(KvTree());
  EXPECT_THAT(view.places, IsEmpty());
  EXPECT_THAT(view.segments, IsEmpty());
  EXPECT_EQ(view.queryCount(), 0);
}

TEST(TreeViewTest, FirstReadersNeverFall) {
  TreeView view;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    view.build(seed % 3 == 0 ? test::causalForest(seed) : test::randomForest(seed));
    for (std::size_t i = 1; i < view.segments.size(); ++i)
      ASSERT_LE(view.segments[i - 1].queryBegin, view.segments[i].queryBegin);
  }
}

} // namespace
} // namespace deft::plan
