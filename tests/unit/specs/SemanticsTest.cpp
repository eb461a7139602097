// What the names of the language mean on a tree: specs run through the float64 oracle. K and q are zero and v
// is one, so that an lse is the logarithm of the sum of exp(score) over what is seen, and an output the sum
// of the weights.
#include "runtime/exec/RandomInputs.h"
#include "runtime/reference/Oracle.h"
#include "tests/unit/compiler/spec/SpecTesting.h"

#include <cmath>

namespace deft::spec::testing {
namespace {

/// root (3 tokens) - middle (2) - leaf (2); a second root (1 token). Queries: 0 at the leaf, all of it; 1 at
/// the leaf, its first token; 2 at the root, 2 tokens; 3 at the second root, none of its tokens.
tree::KvTree smallForest() {
  tree::KvTree forest;
  int location = 0;
  for (auto [parent, tokens] : {std::pair{-1, 3}, {0, 2}, {1, 2}, {-1, 1}}) {
    EXPECT_TRUE(forest.addNode(parent, tokens, location).ok());
    location += tokens;
  }
  EXPECT_TRUE(forest.addQuery(2).ok());
  EXPECT_TRUE(forest.addQuery(2, 1).ok());
  EXPECT_TRUE(forest.addQuery(0, 2).ok());
  EXPECT_TRUE(forest.addQuery(3, 0).ok());
  return forest;
}

struct Seen {
  double lse, weights;
};

Seen run(const std::string &items, int query, int head = 0) {
  Compiled compiled = compile(
      "attention a { query_heads = 4; kv_heads = 2; head_dim = 16; kv_cache = contiguous; " + items + " }");
  const Variant &variant = compiled.only();
  tree::KvTree forest = smallForest();
  exec::Inputs inputs;
  inputs.queryCount = 4;
  inputs.q.assign(4 * 4 * 16, 0);
  inputs.k.assign(8 * 2 * 16, 0);
  inputs.v.assign(8 * 2 * 16, 0x3F80); // 1 in bf16
  inputs.cache = exec::cacheLayoutsOf(variant);
  auto rows = reference::evaluateGroup(variant, forest, inputs, query, head / 2, reference::Precision::Exact);
  const reference::Row &row = rows.at(head % 2);
  return {row.lse, row.out.at(0)};
}

double logSumExp(const std::vector<double> &scores) {
  double sum = 0;
  for (double score : scores)
    sum += std::exp(score);
  return std::log(sum);
}

// Rules H3, H5.
TEST(SemanticsTest, AFactorOfVForEachHeadIsOneOfTheOutput) {
  for (int head = 0; head < 4; ++head) {
    const Seen plain = run("score = 0;", 0, head),
               scaled = run("score = 0; output = x * (1 + head);", 0, head);
    EXPECT_NEAR(scaled.weights, (1 + head) * plain.weights, 1e-12);
    EXPECT_EQ(scaled.lse, plain.lse);
  }
  EXPECT_EQ(run("output = x + 3;", 3).weights, 3); // of a query that sees no token, x is 0
}

// Rule V1.
TEST(SemanticsTest, AQuerySeesItsPathAndTheFirstTokensOfItsOwnNode) {
  EXPECT_NEAR(run("score = 0;", 0).lse, std::log(7), 1e-12);
  EXPECT_NEAR(run("score = 0;", 1).lse, std::log(6), 1e-12);
  EXPECT_NEAR(run("score = 0;", 2).lse, std::log(2), 1e-12);
}

// Rule V2.
TEST(SemanticsTest, PositionsCountFromTheRoot) {
  EXPECT_NEAR(run("score = kv_pos;", 0).lse, logSumExp({0, 1, 2, 3, 4, 5, 6}), 1e-12);
  EXPECT_NEAR(run("score = q_pos;", 0).lse, 6 + std::log(7), 1e-12);
  EXPECT_NEAR(run("score = q_pos;", 1).lse, 5 + std::log(6), 1e-12);
  EXPECT_NEAR(run("score = kv_pos - q_pos;", 2).lse, logSumExp({-1, 0}), 1e-12);
}

// Rule V3.
TEST(SemanticsTest, DepthIsTheTokensAndQueryTheCallersIndex) {
  EXPECT_NEAR(run("score = depth;", 0).lse, logSumExp({0, 0, 0, 1, 1, 2, 2}), 1e-12);
  EXPECT_NEAR(run("score = query;", 2).lse, 2 + std::log(2), 1e-12);
}

// Rule V4.
TEST(SemanticsTest, HeadsCountFromZeroAndShareTheirKvHead) {
  for (int head = 0; head < 4; ++head) {
    EXPECT_NEAR(run("score = head;", 2, head).lse, head + std::log(2), 1e-12);
    EXPECT_NEAR(run("score = kv_head;", 2, head).lse, head / 2 + std::log(2), 1e-12);
  }
}

// Rule V5.
TEST(SemanticsTest, AMaskHidesTokensOfThePathAndShowsNoOthers) {
  EXPECT_NEAR(run("mask = kv_pos > 4; score = kv_pos;", 0).lse, logSumExp({5, 6}), 1e-12);
  EXPECT_NEAR(run("mask = true; score = 0;", 2).lse, std::log(2), 1e-12);
}

// Rules V2, V7.
TEST(SemanticsTest, APathGoesOnToTheEndOfTheQuerysNode) {
  EXPECT_NEAR(run("mask = path; score = kv_pos;", 1).lse, logSumExp({0, 1, 2, 3, 4, 5, 6}), 1e-12);
  EXPECT_NEAR(run("mask = path && kv_pos > 3; score = kv_pos - q_pos;", 1).lse, logSumExp({-1, 0, 1}), 1e-12);
  EXPECT_NEAR(run("mask = path && kv_pos <= q_pos; score = 0;", 1).lse, std::log(6), 1e-12);
  EXPECT_NEAR(run("mask = kv_pos <= q_pos && path; score = kv_pos;", 2).lse, logSumExp({0, 1}), 1e-12);
  EXPECT_NEAR(run("mask = path; score = q_pos;", 3).lse, -1, 1e-12) << "the token behind a query of none";
  EXPECT_NEAR(run("mask = path; score = 0;", 2).lse, std::log(3), 1e-12) << "nodes below are not on the path";
}

// Rule V6.
TEST(SemanticsTest, AScoreOfMinusInfinityHides) {
  EXPECT_NEAR(run("score = kv_pos % 2 == 0 ? s : -inf;", 0).lse, std::log(4), 1e-12);
}

// Rule N1.
TEST(SemanticsTest, SoftmaxWeightsSumToOne) {
  EXPECT_NEAR(run("score = kv_pos * 0.3;", 0).weights, 1, 1e-12);
}

// Rule N2.
TEST(SemanticsTest, SigmoidWeightsEachTokenByItself) {
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  double expected = sigmoid(0 - 1.5) + sigmoid(1 - 1.5);
  EXPECT_NEAR(run("score = kv_pos; normalize = sigmoid(-1.5);", 2).weights, expected, 1e-12);
  EXPECT_NEAR(run("normalize = sigmoid;", 0).weights, 7 * 0.5, 1e-12);
}

// Rule N3.
TEST(SemanticsTest, WhoSeesNothingHasOutputZeroAndLseMinusInfinity) {
  for (int query : {0, 3}) {
    Seen seen = run(query == 0 ? "mask = kv_pos < 0;" : "", query);
    EXPECT_EQ(seen.weights, 0);
    EXPECT_TRUE(std::isinf(seen.lse) && seen.lse < 0);
  }
  EXPECT_EQ(run("normalize = sigmoid;", 3).weights, 0);
}

// Rules N3, N4.
TEST(SemanticsTest, ASinkTakesItsShareOfTheWeightsOncePerRow) {
  const std::string sink = "score = 0; normalize = softmax with sink(0.5 * head);";
  for (int head : {0, 3}) {
    const double weight = std::exp(0.5 * head);
    EXPECT_NEAR(run(sink, 0, head).lse, std::log(7 + weight), 1e-12);
    EXPECT_NEAR(run(sink, 0, head).weights, 7 / (7 + weight), 1e-12);
    EXPECT_NEAR(run(sink, 3, head).lse, 0.5 * head, 1e-12) << "a query that sees nothing";
    EXPECT_EQ(run(sink, 3, head).weights, 0);
  }
}

// Rule E9.
TEST(SemanticsTest, DivisionRoundsDown) {
  EXPECT_NEAR(run("score = floor_div(kv_pos - 3, 2);", 0).lse, logSumExp({-2, -1, -1, 0, 0, 1, 1}), 1e-12);
  EXPECT_NEAR(run("score = floor((kv_pos - 3) / 2);", 0).lse, logSumExp({-2, -1, -1, 0, 0, 1, 1}), 1e-12);
  EXPECT_NEAR(run("score = floor_div(kv_pos, depth);", 2).lse, std::log(2), 1e-12) << "by 0 it is 0";
}

} // namespace
} // namespace deft::spec::testing
