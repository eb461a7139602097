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
      tree, {.pageSize = exec::pageSizeOf(variant), .order = tree::PlacementOrder::Scattered});
  EXPECT_TRUE(placement);
  const exec::Inputs inputs = exec::makeRandomInputs(variant, tree, *placement, {}, 1);
  return plainReadBandwidth(variant, tree, inputs, threads);
}

TEST(PlainReadTest, EveryLayoutOfACacheIsReadByAnyNumberOfThreads) {
  spec::Variant variant;
  variant.queryHeads = 4;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(16);
  for (const bool isPaged : {false, true})
    for (const auto order : {spec::PageOrder::Nhd, spec::PageOrder::Hnd})
      for (const int threads : {1, 3}) {
        variant.cache.paged = isPaged;
        variant.cache.pageSize = 16;
        variant.cache.order = order;
        const double bandwidth = bandwidthOf(variant, test::levelTree({1, 4}, {300, 70}), threads);
        EXPECT_TRUE(std::isfinite(bandwidth));
        EXPECT_GT(bandwidth, 0);
      }
}

TEST(PlainReadTest, ATreeWithoutTokensHasNoBandwidth) {
  spec::Variant variant;
  variant.queryHeads = variant.kvHeads = 1;
  variant.tensors = spec::Tensors::alike(16);
  EXPECT_EQ(bandwidthOf(variant, test::levelTree({1}, {0}), 2), 0);
}

} // namespace
} // namespace deft::bench
