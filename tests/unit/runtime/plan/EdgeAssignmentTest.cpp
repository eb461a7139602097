/// The table's choice of edges, against all choices there are. Plans made of it are GreedyTest's.

#include "runtime/plan/EdgeAssignment.h"

#include "tests/unit/runtime/plan/PlanTesting.h"

#include <random>

namespace deft::plan {
namespace {

struct Assigned {
  TreeView view;
  CostModel model;
  GroupPrices prices;
  EdgeAssignment assignment;

  Assigned(const tree::KvTree &tree, int ratio, int chunk) {
    view.build(tree);
    model.set({ratio, 8}, makeConfig(chunk, {64, 16}), 132);
    prices.set(model, chunk);
    assignment.solve(view, model, chunk);
  }
  std::vector<char> chosen() const {
    std::vector<char> isJoined(view.places.size(), 0);
    for (const int place : assignment.joined())
      isJoined[static_cast<std::size_t>(place)] = 1;
    return isJoined;
  }
  /// Groups one by one: a node's tokens and those of the ancestors that it is joined to in a row, for the
  /// queries below it that are in no child's group.
  double price(const std::vector<char> &isJoined) const {
    const auto joined = [&](int p) { return isJoined[static_cast<std::size_t>(p)] != 0; };
    double us = 0;
    for (int p = 0; p < view.placeCount(); ++p) {
      const Place &place = view.places[static_cast<std::size_t>(p)];
      int queries = place.readersEnd - place.ownBegin;
      for (int child = p + 1; child < place.subtreeEnd; child = view.places[child].subtreeEnd)
        if (joined(child))
          queries -= view.places[child].readersEnd - view.places[child].ownBegin;
      if (queries == 0)
        continue;
      int top = p, tokens = place.ownEnd < place.readersEnd ? place.tokens : readTokens(view, place);
      for (; joined(top); top = view.places[top].parent)
        tokens += view.places[view.places[top].parent].tokens;
      const bool isWhole = view.places[top].parent < 0 && queries == place.ownEnd - place.ownBegin;
      us += prices.sameReaders(prices.readers(queries), splat(static_cast<float>(tokens)),
                               splat(isWhole ? -1 : 0))[0];
    }
    return us;
  }
  double least() const {
    double least = 1e300;
    std::vector<char> isJoined(view.places.size(), 0);
    const unsigned edges = static_cast<unsigned>(view.placeCount()) - 1;
    for (unsigned bits = 0; bits < 1U << edges; ++bits) {
      bool isPossible = true;
      for (unsigned e = 0; e < edges; ++e) {
        isJoined[e + 1] = static_cast<char>(bits >> e & 1);
        isPossible &= isJoined[e + 1] == 0 || view.places[e + 1].parent >= 0;
      }
      if (isPossible)
        least = std::min(least, price(isJoined));
    }
    return least;
  }
};

/// One path: every node has one child at most, so nothing of the choice is given up.
TEST(EdgeAssignmentTest, OfAChainTheLeastIsFound) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 150; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    tree::KvTree tree;
    int node = -1;
    for (unsigned i = 0; i < 2 + random() % 6; ++i) {
      node = tree.addNode(node, static_cast<int>(1 + random() % (turn % 2 == 0 ? 100 : 1500))).value();
      for (unsigned q = random() % 3 == 0 ? random() % 20 : 0; q > 0; --q)
        ASSERT_TRUE(tree.addQuery(node));
    }
    for (unsigned q = 1 + random() % 30; q > 0; --q)
      ASSERT_TRUE(tree.addQuery(node));
    const Assigned one(tree, turn % 3 == 0 ? 1 : 4, turn % 5 == 0 ? 256 : 0);
    EXPECT_LE(one.price(one.chosen()), one.least() * 1.001);
  }
}

/// Of trees with several children a node's readers are not tried in all ways.
TEST(EdgeAssignmentTest, OfATreeItIsNearTheLeast) {
  std::mt19937 random(6);
  int mixed = 0;
  for (int turn = 0; turn < 200; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    tree::KvTree tree;
    const int nodes = 2 + static_cast<int>(random() % 8);
    for (int i = 0; i < nodes; ++i)
      ASSERT_TRUE(tree.addNode(i - 1 - static_cast<int>(i > 0 ? random() % static_cast<unsigned>(i) : 0),
                               1 + static_cast<int>(random() % (turn % 2 == 0 ? 60 : 900))));
    for (int i = 0; i < nodes; ++i)
      for (unsigned q = tree.nodes()[i].firstChild < 0 ? 1 + random() % 6 : 0; q > 0; --q)
        ASSERT_TRUE(tree.addQuery(i));
    const Assigned one(tree, turn % 3 == 0 ? 1 : 4, 0);
    const double least = one.least();
    EXPECT_LE(one.price(one.chosen()), least * 1.01);
    std::vector<char> all(one.view.places.size());
    for (std::size_t p = 0; p < all.size(); ++p)
      all[p] = static_cast<char>(one.view.places[p].parent >= 0);
    mixed +=
        least < one.price(all) * 0.99 && least < one.price(std::vector<char>(all.size(), 0)) * 0.99 ? 1 : 0;
  }
  EXPECT_GT(mixed, 50) << "where neither all nor none are joined";
}

/// A node on whose way nobody stops costs its readers nothing to read with the next: they are one group.
TEST(EdgeAssignmentTest, ShortNodesWithOneWayDownAreReadWithIt) {
  tree::KvTree tree;
  int node = tree.addNode(-1, 400).value();
  for (int i = 0; i < 12; ++i) // more of them than the table has lanes
    node = tree.addNode(node, 5).value();
  for (int leaf = 0; leaf < 2; ++leaf)
    ASSERT_TRUE(tree.addQuery(tree.addNode(node, 2000).value()));
  const Assigned one(tree, 4, 0);
  const std::vector<char> isJoined = one.chosen();
  for (int place = 1; place <= 12; ++place)
    EXPECT_TRUE(isJoined[static_cast<std::size_t>(place)]) << place;
}

TEST(EdgeAssignmentTest, RootsAndWhatNobodyReadsAreNeverJoined) {
  tree::KvTree tree = test::levelTree({3, 6}, {3, 2});
  ASSERT_TRUE(tree.addNode(0, 4)); // nobody reads it
  const Assigned one(tree, 1, 0);
  for (const int place : one.assignment.joined()) {
    EXPECT_GE(one.view.places[place].parent, 0);
    EXPECT_GT(one.view.places[place].readersEnd, one.view.places[place].ownBegin);
  }
  EXPECT_EQ(one.assignment.joined().size(), 6U);
  EXPECT_TRUE(std::is_sorted(one.assignment.joined().begin(), one.assignment.joined().end()));
}

} // namespace
} // namespace deft::plan
