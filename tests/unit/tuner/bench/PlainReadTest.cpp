#include "tuner/bench/PlainRead.h"

#include "runtime/exec/RandomInputs.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deft::bench {
namespace {

double bandwidthOf(const spec::Variant &variant, tree::KvTree tree, int threads) {
  const auto placement = tree::placeInCache(
      tree, {.pageSize = variant.cache.pageSize, .order = tree::PlacementOrder::Scattered});
  EXPECT_TRUE(placement);
  const exec::Inputs inputs = exec::makeRandomInputs(variant, tree, *placement, {}, 1);
  std::vector<tree::Stretch> tokens;
  for (const tree::Node &node : tree.nodes())
    tokens.push_back({node.location, node.tokens});
  return plainReadBandwidth(variant, tokens, inputs, threads);
}

TEST(PlainReadTest, EveryLayoutOfACacheIsReadByAnyNumberOfThreads) {
  spec::Variant variant;
  variant.queryHeads = 4;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(16);
  for (const bool isPaged : {false, true})
    for (const auto order : {spec::PageOrder::Nhd, spec::PageOrder::Hnd})
      for (const int threads : {1, 3}) {
        variant.cache.pageSize = isPaged ? 16 : 0;
        variant.cache.order = order;
        const double bandwidth = bandwidthOf(variant, test::levelTree({1, 4}, {300, 70}), threads);
        EXPECT_TRUE(std::isfinite(bandwidth));
        EXPECT_GT(bandwidth, 0);
      }
}

// Twice as far as its 14 MB reach there is nothing to read.
TEST(PlainReadTest, ACacheOfBytesIsReadWhereItLies) {
  spec::Variant variant;
  variant.queryHeads = variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(128);
  variant.tensors.k.dtype = variant.tensors.v.dtype = spec::DType::F8E4M3;
  EXPECT_GT(bandwidthOf(variant, test::levelTree({1, 4}, {40000, 4000}), 2), 0);
}

TEST(PlainReadTest, ATreeWithoutTokensHasNoBandwidth) {
  spec::Variant variant;
  variant.queryHeads = variant.kvHeads = 1;
  variant.tensors = spec::Tensors::alike(16);
  EXPECT_EQ(bandwidthOf(variant, test::levelTree({1}, {0}), 2), 0);
}

// Two items read tokens 10 to 29, one of them 30 to 39, too; a run of none is nothing.
TEST(PlainReadTest, TokensThatSeveralItemsReadAreReadOnce) {
  plan::Plan plan;
  auto &runs = plan.runs.own();
  runs.resize(5);
  const int stretches[][2] = {{50, 5}, {10, 20}, {10, 30}, {70, 0}, {40, 8}};
  for (std::size_t i = 0; i < std::size(stretches); ++i) {
    runs[i].location = stretches[i][0];
    runs[i].tokens = stretches[i][1];
  }
  EXPECT_EQ(tokensRead(plan), (std::vector<tree::Stretch>{{10, 38}, {50, 5}}));
}

} // namespace
} // namespace deft::bench
