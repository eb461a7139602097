#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace deft {
namespace {

using testing::Each;

constexpr std::uint16_t kOne = 0x3f80; // in bf16

TEST(SequenceTreeTest, GivesPlacesAndTakesThemBack) {
  SequenceTree tree = SequenceTree::make({.pageSize = 16, .pages = 8}).value();
  const int root = tree.addRoot(20).value();
  EXPECT_EQ(tree.freePages(), 6);
  EXPECT_GE(tree.slot(root, 0), 0);
  EXPECT_EQ(tree.slot(root, 20), -1);
  EXPECT_EQ(tree.slot(7, 0), -1);
  const int branch = tree.fork(root).value();
  EXPECT_TRUE(tree.append(branch, 40));
  EXPECT_LT(tree.freePages(), 5);
  EXPECT_FALSE(tree.append(branch, 200)); // out of pages, and nothing has changed
  EXPECT_EQ(tree.tree().node(branch).tokens, 40);
  EXPECT_TRUE(tree.prune(root));
  EXPECT_EQ(tree.freePages(), 8);
  EXPECT_FALSE(SequenceTree::make({.pageSize = -1, .pages = 8}));
}

/// Branches fork and grow and a draft is accepted; only slots that the tree has given hold values, all of
/// them 1, so an output is 1 exactly where every token's place is right.
TEST(SequenceTreeTest, RunsWhereItsTokensLie) {
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const Runtime runtime = Runtime::create({.threads = 2}).value();
  constexpr std::size_t kPages = 16, kToken = 2 * 64;
  SequenceTree tree = SequenceTree::make({.pageSize = attention.pageSize(), .pages = kPages}).value();
  std::vector<std::uint16_t> k(kPages * 16 * kToken, 0), v(k.size(), 0x7fff); // NaN
  const auto fill = [&](int node, int first) {
    for (int i = first; i < tree.tree().node(node).tokens; ++i)
      std::fill_n(v.begin() +
                      static_cast<std::ptrdiff_t>(tree.slot(node, i)) * static_cast<std::ptrdiff_t>(kToken),
                  kToken, kOne);
  };
  const auto copy = [&](const std::vector<TokenCopy> &copies) {
    for (const TokenCopy &one : copies)
      std::copy_n(v.begin() + one.from * static_cast<std::ptrdiff_t>(kToken),
                  static_cast<std::size_t>(one.tokens) * kToken,
                  v.begin() + one.to * static_cast<std::ptrdiff_t>(kToken));
  };
  const auto grow = [&](int node, int tokens) {
    const int before = tree.tree().node(node).tokens;
    copy(tree.append(node, tokens).value());
    fill(node, before);
  };

  const int root = tree.addRoot(21).value();
  fill(root, 0);
  const int left = tree.fork(root).value(), right = tree.fork(root, 10).value();
  (void)tree.addQuery(left).value();
  (void)tree.addQuery(right).value();
  Plan plan = Plan::make(attention, tree.tree()).value();
  int advanced = 0;
  for (int step = 0; step < 30; ++step) {
    grow(left, 1);
    grow(right, 2);
    if (step == 12) { // a draft of three tokens, of which two are accepted
      const int parents[] = {-1, 0, 0};
      const std::vector<int> draft = tree.addTokenTree(left, parents).value();
      for (const int node : draft)
        fill(node, 0);
      copy(tree.accept(left, draft[2]).value());
    }
    advanced += plan.advance(tree.tree()).value() == Advanced::InPlace;
    std::vector<std::uint16_t> q(2 * 4 * 64), out(q.size());
    const auto ran = runtime.run(attention, plan,
                                 {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = tree.pageTable()},
                                 {.out = out.data()});
    ASSERT_TRUE(ran) << ran.error().text();
    ASSERT_THAT(out, Each(kOne)) << "step " << step;
  }
  EXPECT_GT(advanced, 20);
}

} // namespace
} // namespace deft
