#include "tuner/workload/Recipes.h"

#include "runtime/tree/TreeSummary.h"
#include "tuner/workload/Workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

/// What each generator promises, step by step.
namespace deft::workload {
namespace {

Workload mustMake(const std::string &name, std::uint64_t seed = 7) {
  auto workload = make(name, seed);
  EXPECT_TRUE(workload) << name << ": " << workload.error().message;
  return std::move(*workload);
}

TEST(RecipesTest, FewShotReadsWhatDeftsTableSays) {
  // DeFT's unit: 32 layers, 32 heads, head dim 128, K and V of 2 bytes.
  constexpr double kBytesPerToken = 32.0 * 32 * 128 * 2 * 2;
  struct Row {
    int branches;
    double sharedTb, queryTb;
  };
  for (const Row &row : {Row{20, 1.68, 17.62}, Row{30, 2.10, 26.43}, Row{50, 2.94, 44.05}}) {
    Workload workload = mustMake("few_shot:branches=" + std::to_string(row.branches));
    EXPECT_EQ(workload.steps(), 400);
    double read = 0, paths = 0;
    do {
      const tree::TreeSummary summary = tree::summarize(workload.tree());
      read += static_cast<double>(summary.readTokens);
      paths += static_cast<double>(summary.pathTokens);
    } while (*workload.next());
    EXPECT_NEAR(read * kBytesPerToken / 1e12, row.sharedTb, 0.01 * row.sharedTb);
    EXPECT_NEAR(paths * kBytesPerToken / 1e12, row.queryTb, 0.01 * row.queryTb);
  }
}

TEST(RecipesTest, LevelsAreSpreadEvenly) {
  Workload workload = mustMake("levels:nodes=1,4,256,tokens=8,256,32");
  const tree::KvTree &tree = workload.tree();
  EXPECT_EQ(tree.aliveNodes(), 261);
  EXPECT_EQ(tree.queries().size(), 256u);
  EXPECT_EQ(tree.tokens(), 8 + 4 * 256 + 256 * 32);
  std::vector<int> children(tree.nodes().size(), 0);
  for (const tree::Query &query : tree.queries())
    ++children[tree.nodes()[query.node].parent];
  EXPECT_EQ(std::count(children.begin(), children.end(), 64), 4);
  ASSERT_TRUE(*workload.next());
  EXPECT_EQ(tree.tokens(), 8 + 4 * 256 + 256 * 33);
}

TEST(RecipesTest, SystemPromptsHaveTheirLevels) {
  Workload workload = mustMake("system_prompts:output=20,shortest=5");
  const tree::TreeSummary summary = tree::summarize(workload.tree());
  EXPECT_EQ(summary.queries, 128);
  EXPECT_EQ(summary.levels, 5);
  EXPECT_EQ(summary.roots, 1);
  EXPECT_EQ(summary.nodes, 1 + 4 + 16 + 16 + 128);
  for (const tree::Query &query : workload.tree().queries())
    EXPECT_EQ(workload.tree().pathTokens(query), 459 + 38 + 584 + 2112 + 64 + 1);
  ASSERT_TRUE(workload.seek(20));
  EXPECT_LT(workload.tree().queries().size(), 128u); // the short ones are through
  EXPECT_GT(workload.tree().queries().size(), 0u);
}

TEST(RecipesTest, MultiFewShotHasCombinationsAndQuestions) {
  Workload workload = mustMake("multi_few_shot");
  const tree::TreeSummary summary = tree::summarize(workload.tree());
  EXPECT_EQ(summary.nodes, 1 + 8 + 8 * 16);
  EXPECT_EQ(summary.queries, 128);
  const auto &nodes = workload.tree().nodes();
  std::set<int> lengths;
  for (int examples = nodes[0].firstChild; examples >= 0; examples = nodes[examples].nextSibling) {
    EXPECT_NEAR(nodes[examples].tokens, 20 * 120, 20 * 30);
    lengths.insert(nodes[examples].tokens);
  }
  EXPECT_GT(lengths.size(), 4u);
}

TEST(RecipesTest, DocumentsAreSharedWherePromptsBeginAlike) {
  Workload workload = mustMake("multi_document:documents=6,each=3,requests=200");
  const tree::KvTree &tree = workload.tree();
  const tree::TreeSummary summary = tree::summarize(tree);
  EXPECT_EQ(summary.queries, 200);
  EXPECT_EQ(summary.levels, 4);
  EXPECT_EQ(summary.roots, 4);                 // three of six in order begin with one of the first four
  EXPECT_EQ(summary.nodes, 200 + 20 + 10 + 4); // 6 choose 3 prompts, 10 beginnings of two documents
}

TEST(RecipesTest, FinishedSamplesLeaveTheTree) {
  Workload workload = mustMake("grpo:prompts=3,group=5,output=30,shortest=3");
  int before = workload.tree().aliveNodes();
  EXPECT_EQ(before, 3 + 15);
  do {
    const tree::KvTree &tree = workload.tree();
    EXPECT_EQ(tree.aliveNodes(), 3 + static_cast<int>(tree.queries().size()));
    EXPECT_LE(tree.aliveNodes(), before);
    before = tree.aliveNodes();
  } while (*workload.next());
  EXPECT_LT(before, 18);
  EXPECT_GT(before, 3);
}

TEST(RecipesTest, BeamsStayAsManyAndPruneWhatNobodyReads) {
  for (int churn : {0, 20, 100}) {
    Workload workload = mustMake("beam_search:prompt=50,beams=6,steps=200,churn=" + std::to_string(churn));
    bool hasForked = false;
    do {
      const tree::KvTree &tree = workload.tree();
      ASSERT_EQ(tree.queries().size(), 6u);
      const tree::TreeSummary summary = tree::summarize(tree);
      ASSERT_EQ(summary.readTokens, summary.tokens) << "step " << workload.step();
      ASSERT_EQ(summary.pathTokens, 6 * (50 + workload.step())) << "step " << workload.step();
      hasForked |= summary.levels > 2;
    } while (*workload.next());
    EXPECT_EQ(hasForked, churn > 0);
  }
}

TEST(RecipesTest, ReasoningGoesOnFromOneThought) {
  for (bool prunes : {false, true}) {
    Workload workload =
        mustMake(std::string("reasoning:depth=4,width=5,thought=20,prune=") + (prunes ? "1" : "0"));
    do {
      EXPECT_LE(workload.tree().queries().size(), 5u);
      ASSERT_GE(workload.tree().queries().size(), 1u);
    } while (*workload.next());
    const tree::TreeSummary summary = tree::summarize(workload.tree());
    EXPECT_EQ(summary.levels, 5);
    EXPECT_EQ(summary.nodes, prunes ? 1 + 3 + 5 : 1 + 4 * 5);
  }
}

TEST(RecipesTest, ChainsEndInAnAnswerFromAllOfThem) {
  Workload workload = mustMake("multi_chain:system=10,questions=1,question=5,chains=3,chain=8,answer=4");
  int chainTokens = 0;
  do {
    if (workload.tree().aliveNodes() == 5)
      chainTokens = static_cast<int>(workload.tree().tokens()) - 15;
  } while (*workload.next());
  EXPECT_EQ(workload.tree().aliveNodes(), 3);
  EXPECT_EQ(workload.tree().tokens(), 15 + chainTokens + 4);
  EXPECT_EQ(workload.tree().queries().size(), 1u);
}

TEST(RecipesTest, TokenTreesHangBelowAGrowingSequence) {
  for (const char *shape : {"medusa", "random"}) {
    Workload workload = mustMake(std::string("token_tree:prompt=100,tokens=40,steps=100,shape=") + shape);
    int length = 100;
    do {
      const tree::KvTree &tree = workload.tree();
      ASSERT_EQ(tree.queries().size(), 40u);
      ASSERT_EQ(tree.aliveNodes(), 41);
      ASSERT_EQ(tree.firstRoot(), 0);
      const int now = tree.nodes()[0].tokens;
      if (workload.step() == 1)
        EXPECT_EQ(now, 100);
      else
        EXPECT_GT(now, length); // token 0 is always right
      length = now;
    } while (*workload.next());
    EXPECT_GT(length, 100 + 99);
  }
}

TEST(RecipesTest, RaggedBatchesHaveAQueryForEachNewToken) {
  Workload workload = mustMake("ragged:shared=50,decodes=3,context=9,prefills=2,before=4,chunk=11,steps=5");
  for (int step = 1; step <= 5; ++step) {
    const tree::KvTree &tree = workload.tree();
    EXPECT_EQ(tree.tokens(), 50 + 3 * (9 + step) + 2 * (4 + 11 * step));
    ASSERT_EQ(tree.queries().size(), 3U + 2 * 11);
    for (std::size_t q = 0; q < 3; ++q)
      EXPECT_EQ(tree.pathTokens(tree.queries()[q]), 50 + 9 + step);
    for (int q = 0; q < 22; ++q)
      EXPECT_EQ(tree.pathTokens(tree.queries()[3 + q]), 50 + 4 + 11 * (step - 1) + q % 11 + 1);
    EXPECT_EQ(*workload.next(), step < 5);
  }
}

TEST(RecipesTest, NoSharingSharesNothing) {
  Workload workload = mustMake("no_sharing:requests=30,tokens=500,shortest=100,step=17");
  const tree::TreeSummary summary = tree::summarize(workload.tree());
  EXPECT_EQ(summary.roots, 30);
  EXPECT_EQ(summary.levels, 1);
  EXPECT_EQ(summary.pathTokens, summary.tokens);
}

TEST(RecipesTest, RandomForestsHaveEverything) {
  bool hasEmptyNode = false, hasInnerQuery = false, hasPosition = false, hasGrownOnly = false,
       hasReused = false;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Workload workload = mustMake("random_forest:steps=80", seed);
    std::uint64_t structure = 0;
    do {
      const tree::KvTree &tree = workload.tree();
      ASSERT_EQ(tree.queries().size(), 50u);
      for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node)) {
        hasEmptyNode |= tree.nodes()[node].tokens == 0;
        hasReused |= tree.nodes()[node].parent > node;
      }
      for (const tree::Query &query : tree.queries()) {
        hasInnerQuery |= tree.nodes()[query.node].firstChild >= 0;
        hasPosition |= tree.seenTokens(query) < tree.nodes()[query.node].tokens;
      }
      hasGrownOnly |= tree.structureGeneration() == structure;
      structure = tree.structureGeneration();
    } while (*workload.next());
  }
  EXPECT_TRUE(hasEmptyNode && hasInnerQuery && hasPosition && hasGrownOnly && hasReused);
}

TEST(RecipesTest, MixturesKeepTheirPartsApart) {
  Workload mixture = mustMake("mixture:parts=few_shot+few_shot+no_sharing,few_shot.branches=3,"
                              "few_shot.iterations=5,no_sharing.requests=4,no_sharing.steps=8");
  EXPECT_EQ(mixture.steps(), 8);
  EXPECT_EQ(tree::summarize(mixture.tree()).roots, 2 + 4);
  EXPECT_EQ(mixture.tree().queries().size(), 3u + 3u + 4u);
  ASSERT_TRUE(mixture.seek(6));
  EXPECT_EQ(mixture.tree().queries().size(), 4u);
}

} // namespace
} // namespace deft::workload
