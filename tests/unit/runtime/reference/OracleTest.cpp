#include "runtime/reference/Oracle.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/ScaledRow.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/LatentTensors.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace deft::reference {
namespace {

using spec::Builtin;
using spec::ExprOp;
using spec::ScalarType;
using test::VariantBuilder;

/// One query of one head, dim 2, over tokens whose K and V are written out.
struct Small {
  explicit Small(std::vector<std::array<float, 4>> tokens) : build(1, 1, 2) {
    build.variant.cache.pageSize = 2;
    (void)tree.addNode(-1, static_cast<int>(tokens.size()));
    (void)tree.addQuery(0);
    inputs.queryCount = 1;
    inputs.cache = exec::cacheLayoutsOf(build.variant);
    const int pages = (static_cast<int>(tokens.size()) + 1) / 2;
    for (int page = 0; page < pages; ++page)
      inputs.pageTable.push_back(pages - 1 - page); // backwards
    inputs.k.resize(pages * 4);
    inputs.v.resize(pages * 4);
    for (std::size_t t = 0; t < tokens.size(); ++t)
      for (int d = 0; d < 2; ++d) {
        const long long at = inputs.keyAt(static_cast<int>(t), 2, 0) + d;
        inputs.k[at] = exec::bf16FromFloat(tokens[t][d]);
        inputs.v[at] = exec::bf16FromFloat(tokens[t][2 + d]);
      }
    inputs.q = {exec::bf16FromFloat(1), exec::bf16FromFloat(2)};
  }

  Row evaluate() { return evaluateGroup(build.variant, tree, inputs, 0, 0, Precision::Exact)[0]; }

  VariantBuilder build;
  tree::KvTree tree;
  exec::Inputs inputs;
};

TEST(OracleTest, SoftmaxByHand) {
  Small small({{1, 0, 4, 8}, {0, 1, 2, -2}}); // scores 1 and 2
  const Row row = small.evaluate();
  const double a = std::exp(1), b = std::exp(2);
  EXPECT_NEAR(row.out[0], (4 * a + 2 * b) / (a + b), 1e-12);
  EXPECT_NEAR(row.out[1], (8 * a - 2 * b) / (a + b), 1e-12);
  EXPECT_NEAR(row.lse, std::log(a + b), 1e-12);
}

TEST(OracleTest, OnlyTheDenominatorSeesASink) {
  Small small({{1, 0, 4, 8}, {0, 1, 2, -2}}); // scores 1 and 2
  small.build.variant.sink = small.build.constant(3);
  const Row row = small.evaluate();
  const double a = std::exp(1), b = std::exp(2), sink = std::exp(3);
  EXPECT_NEAR(row.out[0], (4 * a + 2 * b) / (a + b + sink), 1e-12);
  EXPECT_NEAR(row.lse, std::log(a + b + sink), 1e-12);
  small.build.variant.mask = small.build.constant(0, ScalarType::Bool);
  EXPECT_EQ(small.evaluate().out[0], 0);
  EXPECT_NEAR(small.evaluate().lse, 3, 1e-12);
}

TEST(OracleTest, ScaleMultipliesTheProduct) {
  Small small({{1, 0, 4, 8}, {0, 1, 2, -2}});
  small.build.variant.scale = 0.5;
  EXPECT_NEAR(small.evaluate().lse, std::log(std::exp(0.5) + std::exp(1)), 1e-12);
}

TEST(OracleTest, AMaskHidesTokens) {
  Small small({{1, 0, 4, 8}, {0, 1, 2, -2}, {1, 1, 100, 100}});
  auto &b = small.build;
  b.variant.mask = b.op(ExprOp::Lt, ScalarType::Bool, {b.read(Builtin::KvPos), b.integer(1)});
  const Row row = small.evaluate();
  EXPECT_NEAR(row.out[0], 4, 1e-12);
  EXPECT_NEAR(row.lse, 1, 1e-12);
}

TEST(OracleTest, ARowThatSeesNothingIsZeroWithLseOfMinusInfinity) {
  Small small({{1, 0, 4, 8}});
  auto &b = small.build;
  b.variant.mask = b.op(ExprOp::Lt, ScalarType::Bool, {b.read(Builtin::KvPos), b.integer(0)});
  const Row row = small.evaluate();
  EXPECT_EQ(row.out[0], 0);
  EXPECT_EQ(row.lse, -std::numeric_limits<double>::infinity());
}

TEST(OracleTest, AScoreOfMinusInfinityHides) {
  Small small({{1, 0, 4, 8}, {0, 1, 2, -2}});
  auto &b = small.build;
  const auto isFirst = b.op(ExprOp::Eq, ScalarType::Bool, {b.read(Builtin::KvPos), b.integer(0)});
  const auto hidden = b.constant(-std::numeric_limits<double>::infinity());
  b.variant.score = b.op(ExprOp::Select, ScalarType::F32, {isFirst, b.read(Builtin::S), hidden});
  EXPECT_NEAR(small.evaluate().out[0], 4, 1e-12);
}

TEST(OracleTest, SigmoidWeighsEachTokenAlone) {
  Small small({{1, 0, 4, 8}, {0, 1, 2, -2}});
  auto &b = small.build;
  b.variant.normalize = spec::Normalize::Sigmoid;
  b.variant.sigmoidBias = b.constant(-1);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_NEAR(small.evaluate().out[0], 4 * sigmoid(0) + 2 * sigmoid(1), 1e-12);
}

TEST(OracleTest, AQuerySeesItsPathAndNothingElse) {
  tree::KvTree tree;
  (void)tree.addNode(-1, 3);
  (void)tree.addNode(0, 2); // the query's, of which it sees one token
  (void)tree.addNode(0, 4); // a sibling
  (void)tree.addNode(1, 4); // a child
  (void)tree.addQuery(1, 1);
  VariantBuilder build(1, 1, 4);
  build.variant.scale = 0; // all weights equal: the output is the mean of the visible values
  const auto placement = tree::placeInCache(tree, {});
  ASSERT_TRUE(placement);
  const exec::Inputs inputs = exec::makeRandomInputs(build.variant, tree, *placement, {}, 7);
  const Row row = evaluateGroup(build.variant, tree, inputs, 0, 0, Precision::Exact)[0];
  double mean = 0;
  for (int location : {0, 1, 2, 3}) // placed in order: the root's three, then the node's first
    mean += exec::toFloat(inputs.v[inputs.valueAt(location, 16, 0)], spec::DType::BF16) / 4;
  EXPECT_NEAR(row.out[0], mean, 1e-12);
  EXPECT_NEAR(row.lse, std::log(4), 1e-12);
}

TEST(OracleTest, NamesHaveTheirMeaning) {
  // The score is the name itself; with one visible token the lse is that token's score.
  const auto lseOf = [](Builtin name, int query, int head) {
    VariantBuilder build(4, 2, 4);
    build.variant.score = build.op(ExprOp::ToF32, ScalarType::F32, {build.read(name)});
    build.variant.mask =
        build.op(ExprOp::Eq, ScalarType::Bool, {build.read(Builtin::KvPos), build.integer(5)});
    tree::KvTree tree;
    (void)tree.addNode(-1, 4);
    (void)tree.addNode(0, 3);
    (void)tree.addQuery(1, 2); // q_pos 5
    (void)tree.addQuery(1);    // q_pos 6
    const auto placement = tree::placeInCache(tree, {});
    const exec::Inputs inputs = exec::makeRandomInputs(build.variant, tree, *placement, {}, 7);
    return evaluateGroup(build.variant, tree, inputs, query, head / 2, Precision::Exact)[head % 2].lse;
  };
  EXPECT_EQ(lseOf(Builtin::QPos, 0, 0), 5);
  EXPECT_EQ(lseOf(Builtin::QPos, 1, 0), 6);
  EXPECT_EQ(lseOf(Builtin::KvPos, 1, 0), 5);
  EXPECT_EQ(lseOf(Builtin::Head, 0, 3), 3);
  EXPECT_EQ(lseOf(Builtin::KvHead, 0, 3), 1);
  EXPECT_EQ(lseOf(Builtin::Depth, 0, 0), 1);
  EXPECT_EQ(lseOf(Builtin::Query, 1, 0), 1);
}

/// V in K's memory is as if the beginning of each key had been copied.
TEST(OracleTest, ValuesInKeysAreTheirBeginnings) {
  VariantBuilder build(4, 2, 12);
  build.variant.tensors.v.dim = build.variant.tensors.out.dim = 8;
  build.variant.tensors.valueInKey = true;
  spec::Variant apart = build.variant;
  apart.tensors.valueInKey = false;
  tree::KvTree tree = test::randomForest(3);
  const auto placement = tree::placeInCache(tree, {});
  const exec::Inputs inKeys = exec::makeRandomInputs(build.variant, tree, *placement, {}, 3);
  EXPECT_TRUE(inKeys.v.empty());
  exec::Inputs copied = exec::makeRandomInputs(apart, tree, *placement, {}, 3);
  EXPECT_EQ(copied.v.size() * 12, copied.k.size() * 8);
  for (const tree::Node &node : tree.nodes())
    for (int t = 0; t < node.tokens; ++t)
      for (int head = 0; head < 2; ++head)
        std::copy_n(copied.k.begin() + copied.keyAt(node.location + t, 16, head), 8,
                    copied.v.begin() + copied.valueAt(node.location + t, 16, head));
  for (int query = 0; query < inKeys.queryCount; ++query)
    for (int kvHead = 0; kvHead < 2; ++kvHead) {
      const auto rows = evaluateGroup(build.variant, tree, inKeys, query, kvHead, Precision::Exact),
                 same = evaluateGroup(apart, tree, copied, query, kvHead, Precision::Exact);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].out.size(), 8u);
        EXPECT_EQ(rows[i].out, same[i].out);
        EXPECT_EQ(rows[i].lse, same[i].lse);
      }
    }
}

/// Elements with scales are exact, and a kernel may round them: a cache of the rounded ones is within the
/// noise.
TEST(OracleTest, ElementsWithScalesMayBeRounded) {
  constexpr int kLatent = 64, kRope = 16, kPage = 16;
  VariantBuilder scaled(4, 1, kLatent + kRope), rounded(4, 1, kLatent + kRope);
  scaled.variant.tensors = test::latentBytes(kLatent, kRope, 16);
  rounded.variant.tensors = test::latentTensors(kLatent, kRope);
  for (VariantBuilder *build : {&scaled, &rounded})
    build->variant.cache = {kPage, spec::PageOrder::Nhd};
  double largestLse = 0, largestError = 0, mostNoise = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    tree::KvTree tree = test::randomForest(seed);
    tree::PlacementOptions options;
    options.pageSize = kPage;
    const auto placement = tree::placeInCache(tree, options);
    const exec::Inputs inputs = exec::makeRandomInputs(scaled.variant, tree, *placement, {}, seed);
    exec::Inputs others = exec::makeRandomInputs(rounded.variant, tree, *placement, {}, seed);
    others.q = inputs.q;
    for (const tree::Node &node : tree.nodes())
      for (int t = 0; t < node.tokens; ++t) {
        const long long first =
            exec::elementOf(inputs.cache.k, inputs.pageTable.data(), kPage, node.location + t, 0);
        for (int d = 0; d < kLatent + kRope; ++d)
          others.k[others.keyAt(node.location + t, kPage, 0) + d] =
              exec::bf16FromFloat(exec::keyElement(scaled.variant.tensors, inputs.k.data(), first, d));
      }
    for (int query = 0; query < inputs.queryCount; ++query) {
      const auto exact = evaluateGroup(scaled.variant, tree, inputs, query, 0, Precision::Exact),
                 near = evaluateGroup(rounded.variant, tree, others, query, 0, Precision::Exact);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        if (exact[i].seesNothing)
          continue;
        const double lse = std::fabs(exact[i].lse - near[i].lse),
                     error = relativeError(exact[i].out, near[i].out);
        EXPECT_LE(lse, exact[i].lseNoise) << "seed " << seed << " query " << query;
        EXPECT_LE(error, exact[i].noise) << "seed " << seed << " query " << query;
        mostNoise = std::max(mostNoise, exact[i].lseNoise);
        largestLse = std::max(largestLse, lse);
        largestError = std::max(largestError, error);
      }
    }
  }
  EXPECT_GT(largestLse, 0.1 * mostNoise) << "the noise is not arbitrary";
  EXPECT_GT(largestError, 1e-4);
}

TEST(OracleTest, ThePlacementDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    tree::KvTree tree = test::randomForest(seed);
    std::vector<std::vector<double>> results;
    for (int pageSize : {0, 1, 16})
      for (auto order : {tree::PlacementOrder::InOrder, tree::PlacementOrder::Scattered})
        for (auto pageOrder : {spec::PageOrder::Nhd, spec::PageOrder::Hnd}) {
          VariantBuilder build(4, 2, 8);
          build.variant.cache = {pageSize, pageOrder};
          tree::PlacementOptions options;
          options.pageSize = pageSize;
          options.order = order;
          options.seed = seed;
          const auto placement = tree::placeInCache(tree, options);
          const exec::Inputs inputs = exec::makeRandomInputs(build.variant, tree, *placement, {}, seed);
          std::vector<double> all;
          for (int query = 0; query < inputs.queryCount; ++query)
            for (int kvHead = 0; kvHead < 2; ++kvHead)
              for (const Row &row :
                   evaluateGroup(build.variant, tree, inputs, query, kvHead, Precision::Exact))
                all.insert(all.end(), row.out.begin(), row.out.end());
          results.push_back(all);
        }
    for (const auto &result : results)
      EXPECT_EQ(result, results.front()) << "seed " << seed;
  }
}

} // namespace
} // namespace deft::reference
