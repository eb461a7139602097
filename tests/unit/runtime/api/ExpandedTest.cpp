// Trees that are divided between two plans, of which one reads expanded nodes.
#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char *kSpecs =
    "attention latent { query_heads = 4; kv_cache = latent(dim = 64, rope = 16); scale = 0.2; "
    "output = bf16 with lse; }"
    "attention heads { query_heads = 4; kv_heads = 4; key_dim = 48; value_dim = 32; scale = 0.2; "
    "kv_cache = contiguous; output = bf16 with lse; }"
    "attention grouped : heads { kv_heads = 2; }"
    "attention few : heads { query_heads = 2; kv_heads = 2; }"
    "attention narrow : heads { key_dim = 16; }"
    "attention halves : heads { output = f16 with lse; }"
    "attention sunk : heads { normalize = softmax with sink(1); }";

Attention attentionOf(const char *name) { return compileSpec(kSpecs, {.attention = name}).value(); }

/// A prompt of 40 tokens and two branches of 6 and 7, each with a query.
class ExpandedApiTest : public testing::Test {
protected:
  ExpandedApiTest() {
    prompt = tree.addRoot(40, 0).value();
    for (int branch = 0; branch < 2; ++branch) {
      branches.push_back(tree.addChild(prompt, 6 + branch, 64 + 32 * branch).value());
      (void)tree.addQuery(branches.back()).value();
    }
  }
  std::string errorOf(const std::vector<ExpandedNode> &nodes) {
    const auto divided = divide(absorbed, expanded, tree, nodes, ExpandedChoice::All);
    return divided ? "" : divided.error().message;
  }
  std::string errorWith(const char *other) {
    Plan plan = Plan::make(attentionOf(other), tree).value();
    const auto divided = divide(absorbed, plan, tree, {}, ExpandedChoice::All);
    return divided ? "" : divided.error().message;
  }

  Tree tree;
  int prompt = 0;
  std::vector<int> branches;
  Attention latent = attentionOf("latent"), heads = attentionOf("heads");
  const PlanOptions byNode = {.partition = Partition::Node}; // which reads each token once
  Plan absorbed = Plan::make(latent, tree, byNode).value(),
       expanded = Plan::make(heads, tree, byNode).value();
};

TEST_F(ExpandedApiTest, EachPlanReadsItsNodes) {
  const auto nodes = std::vector<ExpandedNode>{{prompt, 40, 8}};
  EXPECT_THAT(divide(absorbed, expanded, tree, nodes, ExpandedChoice::All).value(), ElementsAre(prompt));
  EXPECT_EQ(absorbed.summary().tokensRead, 13);
  EXPECT_EQ(expanded.summary().tokensRead, 40);
  EXPECT_THAT(divide(absorbed, expanded, tree, {}, ExpandedChoice::All).value(), IsEmpty());
  EXPECT_EQ(absorbed.summary().tokensRead, 53);
  EXPECT_EQ(expanded.summary().tokensRead, 0);
}

TEST_F(ExpandedApiTest, FewReadersOfFewTokensAreNotWorthASecondRun) {
  const auto nodes = std::vector<ExpandedNode>{{prompt, 40, 0}};
  EXPECT_THAT(divide(absorbed, expanded, tree, nodes).value(), IsEmpty());
  EXPECT_EQ(absorbed.summary().tokensRead, 53);
}

TEST_F(ExpandedApiTest, TheChoiceStaysWhileOnlyLeavesGrow) {
  const auto nodes = std::vector<ExpandedNode>{{prompt, 40, 0}};
  (void)divide(absorbed, expanded, tree, nodes, ExpandedChoice::All).value();
  ASSERT_TRUE(tree.append(branches[0], 2));
  EXPECT_FALSE(absorbed.isCurrent());
  EXPECT_THAT(divide(absorbed, expanded, tree, nodes, ExpandedChoice::All).value(), ElementsAre(prompt));
  EXPECT_TRUE(absorbed.isCurrent() && expanded.isCurrent());
  EXPECT_EQ(absorbed.summary().tokensRead, 15);
  ASSERT_TRUE(tree.append(branches[1], 1));
  EXPECT_EQ(absorbed.advance(tree).value(), Advanced::InPlace);
  EXPECT_EQ(expanded.advance(tree).value(), Advanced::InPlace);
  EXPECT_EQ(absorbed.summary().tokensRead, 16);
  EXPECT_EQ(expanded.summary().tokensRead, 40);
}

TEST_F(ExpandedApiTest, AnotherTreeIsToBeDividedAgain) {
  const auto nodes = std::vector<ExpandedNode>{{prompt, 40, 0}};
  (void)divide(absorbed, expanded, tree, nodes, ExpandedChoice::All).value();
  (void)tree.addQuery(branches[0]).value();
  for (Plan *plan : {&absorbed, &expanded}) {
    const auto advanced = plan->advance(tree);
    ASSERT_FALSE(advanced);
    EXPECT_THAT(advanced.error().message, HasSubstr("when it was divided between two plans"));
  }
  EXPECT_EQ(errorOf(nodes), "");
  EXPECT_EQ(expanded.queryCount(), 3);
}

TEST_F(ExpandedApiTest, AChosenNodeDoesNotGrow) {
  const auto nodes = std::vector<ExpandedNode>{{branches[1], 7, 0}};
  ASSERT_EQ(errorOf(nodes), "");
  ASSERT_TRUE(tree.append(branches[1], 1));
  for (Plan *plan : {&absorbed, &expanded}) {
    const auto advanced = plan->advance(tree);
    ASSERT_FALSE(advanced);
    EXPECT_THAT(advanced.error().message, HasSubstr("and its expanded K and V have 7"));
  }
  EXPECT_EQ(errorOf({{branches[1], 8, 0}}), "");
}

TEST_F(ExpandedApiTest, WrongNodesAreNamedAndChangeNothing) {
  ASSERT_EQ(errorOf({{prompt, 40, 0}}), "");
  EXPECT_THAT(errorOf({{99, 1, 0}}),
              HasSubstr("node 99 has expanded K and V, and the tree has no such node"));
  EXPECT_THAT(errorOf({{prompt, 39, 0}}), HasSubstr("has 40 tokens, and its expanded K and V have 39"));
  EXPECT_THAT(errorOf({{prompt, 40, 0}, {prompt, 40, 0}}), HasSubstr("twice"));
  EXPECT_TRUE(absorbed.isCurrent() && expanded.isCurrent());
  EXPECT_EQ(absorbed.summary().tokensRead, 13);
}

TEST_F(ExpandedApiTest, PlansThatDoNotFitAreNamed) {
  EXPECT_THAT(errorWith("latent"), HasSubstr("expanded is a plan of `latent`, whose cache is latent"));
  EXPECT_THAT(errorWith("grouped"), HasSubstr("which has 2 KV heads for 4 query heads"));
  EXPECT_THAT(errorWith("few"), HasSubstr("which has 2 query heads, and `latent` has 4"));
  EXPECT_THAT(errorWith("narrow"), HasSubstr("whose key_dim of 16 has no room beside the rotary part of 16"));
  EXPECT_THAT(errorWith("halves"), HasSubstr("whose output is of another type"));
  EXPECT_THAT(errorWith("sunk"), HasSubstr("`sunk` has sinks"));
  Plan other = Plan::make(heads, tree).value();
  EXPECT_THAT(divide(other, expanded, tree, {}).error().message,
              HasSubstr("absorbed is a plan of `heads`, whose cache is not latent"));
}

TEST_F(ExpandedApiTest, ThePlanOfExpandedNodesHasNoPicture) {
  ASSERT_EQ(errorOf({{prompt, 40, 0}}), "");
  EXPECT_TRUE(absorbed.picture(tree));
  EXPECT_THAT(expanded.picture(tree).error().message, HasSubstr("reads expanded nodes"));
}

} // namespace
} // namespace deft
