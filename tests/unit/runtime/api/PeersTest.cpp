#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <unistd.h>
#include <vector>

namespace deft {
namespace {

std::string freshName() {
  static int count = 0;
  return "peers_api_test." + std::to_string(getpid()) + "." + std::to_string(count++);
}

template <typename Given> std::string textOf(const Given &result) {
  return result ? "" : result.error().text();
}

Tree treeOf(int count, int rank, int tokens) {
  Tree tree;
  tree.addQuery(tree.addRoot(tokens, 0).value()).value();
  setRanks(tree, {.count = count, .rank = rank, .unit = 16}).value();
  return tree;
}

void asThreads(int count, const std::function<void(int)> &rank) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&rank, i] { rank(i); });
  for (std::thread &thread : threads)
    thread.join();
}

/// What two ranks that differ are answered.
std::vector<std::string> answers(const std::function<std::string(Peers &, int)> &rank) {
  const std::string name = freshName();
  std::vector<std::string> answers(2);
  asThreads(2, [&](int i) {
    Peers peers = Peers::meet({.name = name, .count = 2, .rank = i, .bytes = 1 << 12}).value();
    answers[static_cast<std::size_t>(i)] = rank(peers, i);
  });
  return answers;
}

TEST(PeersApiTest, RanksAgreeOnAttentionsPlansAndTrees) {
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const auto agree = [&](int otherTokens, int otherChunk) {
    return answers([&](Peers &peers, int rank) {
      const Tree tree = treeOf(2, rank, rank == 0 ? 40 : otherTokens);
      const Plan plan = Plan::make(attention, tree, {.chunkTokens = rank == 0 ? 64 : otherChunk}).value();
      return textOf(peers.agree({.attention = &attention, .plan = &plan, .tree = &tree}));
    });
  };
  using testing::ElementsAre;
  using testing::StartsWith;
  EXPECT_THAT(agree(40, 64), ElementsAre("", ""));
  EXPECT_THAT(agree(41, 64), ElementsAre(StartsWith("rank 1 has another tree or layout than rank 0"),
                                         StartsWith("rank 0 has another tree or layout than rank 1")));
  EXPECT_THAT(agree(40, 32),
              ElementsAre(StartsWith("rank 1 has another config or options of its plan than rank 0"),
                          StartsWith("rank 0 has another config or options of its plan than rank 1")));
}

TEST(PeersApiTest, ATreeOfAnotherRankIsNamed) {
  Peers peers = Peers::meet({.name = freshName(), .count = 1, .rank = 0, .bytes = 64}).value();
  const Tree tree = treeOf(2, 1, 40);
  EXPECT_EQ(textOf(peers.agree({.tree = &tree})),
            "Agreement::tree is that of rank 1 of 2, and this is rank 0 of 1");
}

TEST(PeersApiTest, HashesAreThoseThatRanksCompare) {
  const Attention attention = loadPackage(DEFT_TEST_PACKAGE).value();
  const auto hashesOf = [&](int rank, int tokens) {
    const Tree tree = treeOf(2, rank, tokens);
    deft_agreement of{};
    of.size = sizeof of;
    of.attention = attention.handle();
    of.tree = tree.handle();
    deft_agreement_hashes hashes{};
    hashes.size = sizeof hashes;
    EXPECT_EQ(deft_agreement_get_hashes(&of, &hashes), DEFT_OK);
    return std::vector<std::uint64_t>{hashes.version, hashes.attention, hashes.options, hashes.tree};
  };
  EXPECT_EQ(hashesOf(0, 40), hashesOf(1, 40));
  EXPECT_EQ(hashesOf(0, 40)[2], 0U) << "no plan was given";
  EXPECT_NE(hashesOf(0, 40)[3], hashesOf(0, 41)[3]);
}

TEST(PeersApiTest, EachRankMergesItsHeads) {
  const auto found = answers([&](Peers &peers, int rank) -> std::string {
    const std::vector<float> out(2 * 4 * 8, rank == 0 ? 1.0f : 3.0f), lse(2 * 4, 0.0f);
    std::vector<float> merged(2 * 2 * 8, -1), mergedLse(2 * 2, -1);
    const auto done =
        peers.merge({2, 4, 8}, {out.data(), lse.data()}, 2 * rank, 2, {merged.data(), mergedLse.data()});
    if (!done)
      return done.error().text();
    EXPECT_THAT(merged, testing::Each(2.0f));
    EXPECT_THAT(mergedLse, testing::Each(testing::FloatNear(0.6931472f, 1e-6f)));
    return "";
  });
  EXPECT_THAT(found, testing::ElementsAre("", ""));
}

TEST(PeersApiTest, WrongCallsAreNamed) {
  EXPECT_EQ(textOf(Peers::meet({.name = "a b"})),
            "`a b` is no name of a group: it has letters, digits, `_`, `-` and `.`");
  Peers peers = Peers::meet({.name = freshName(), .bytes = 1 << 12}).value();
  const std::vector<float> out(2 * 4 * 8), lse(2 * 4);
  std::vector<float> merged(2 * 4 * 8);
  EXPECT_EQ(textOf(peers.merge({2, 4, 8}, {out.data(), lse.data()}, 5, 0, {merged.data()})),
            "headBegin is 5, not between 0 and 4");
  EXPECT_EQ(textOf(peers.merge({2, 4, 8}, {out.data(), lse.data()}, 2, 3, {merged.data()})),
            "headCount is 3, not between 0 and 2");
  EXPECT_THAT(
      textOf(peers.merge({200, 4, 8}, {std::vector<float>(6400).data(), std::vector<float>(800).data()}, 0, 4,
                         {std::vector<float>(6400).data()})),
      testing::StartsWith("results of 28800 bytes, and the group was made for 4096"));
}

} // namespace
} // namespace deft
