/// Where tokens lie, also in pools of more than 2^31 elements. The pools are not there, only their strides:
/// the arithmetic is the test.

#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::exec {
namespace {

constexpr int kHeads = 8, kDim = 128;
constexpr long long kToken = kHeads * kDim;

/// Both ways to ask: of inputs that own, and of a view.
long long elementOf(const Inputs &inputs, int pageSize, int location, int head) {
  InputView view;
  view.cache = inputs.cache;
  view.pageSize = pageSize;
  view.pageTable = inputs.pageTable.data();
  const long long element = inputs.keyAt(location, pageSize, head);
  EXPECT_EQ(view.keyAt(location, head), element);
  return element;
}

TEST(InputsTest, ContiguousCachesBeyond2To31Elements) {
  Inputs inputs;
  inputs.cache.k = {0, kToken, kDim};
  const int location = tree::KvTree::kMaxTokens - 1;
  EXPECT_EQ(elementOf(inputs, 0, location, 7), location * kToken + 7 * kDim);
  EXPECT_GT(elementOf(inputs, 0, location, 7), 1LL << 39);
}

TEST(InputsTest, PagesBeyond2To31Elements) {
  Inputs inputs; // nhd: [page][slot][kv_head][dim]
  inputs.cache.k = {16 * kToken, kToken, kDim};
  inputs.pageTable = {5, (1 << 26) - 1, 0};
  EXPECT_EQ(elementOf(inputs, 16, 16 + 15, 7), ((1LL << 26) - 1) * 16 * kToken + 15 * kToken + 7 * kDim);
  EXPECT_GT(elementOf(inputs, 16, 16, 0), 1LL << 31);
  EXPECT_EQ(elementOf(inputs, 16, 32, 0), 0);
}

TEST(InputsTest, HeadsFarApart) {
  Inputs inputs; // hnd with very long pages: [page][kv_head][slot][dim]
  const int pageSize = 1 << 22;
  const long long head = static_cast<long long>(pageSize) * kDim;
  inputs.cache.k = {kHeads * head, kDim, head};
  inputs.pageTable = {3, 2};
  EXPECT_EQ(elementOf(inputs, pageSize, pageSize - 1, 7),
            3 * kHeads * head + 7 * head + (pageSize - 1LL) * kDim);
  EXPECT_GT(elementOf(inputs, pageSize, pageSize - 1, 7), 1LL << 33);
}

TEST(InputsTest, TheSlotInALongPageTimesItsStride) {
  Inputs inputs;
  inputs.cache.k = {0, kToken, kDim};
  inputs.pageTable = {0};
  const int pageSize = 1 << 30;
  EXPECT_EQ(elementOf(inputs, pageSize, pageSize - 1, 0), (pageSize - 1LL) * kToken);
}

TEST(InputsTest, LayoutsHaveTheirStrides) {
  test::VariantBuilder build(8, 4, 64);
  build.variant.cache = {16, spec::PageOrder::Nhd};
  abi::CacheLayout layout = cacheLayoutsOf(build.variant).k;
  EXPECT_EQ(layout.pageStride, 16 * 4 * 64);
  EXPECT_EQ(layout.tokenStride, 4 * 64);
  EXPECT_EQ(layout.headStride, 64);
  build.variant.cache.order = spec::PageOrder::Hnd;
  layout = cacheLayoutsOf(build.variant).k;
  EXPECT_EQ(layout.pageStride, 16 * 4 * 64);
  EXPECT_EQ(layout.tokenStride, 64);
  EXPECT_EQ(layout.headStride, 16 * 64);
  build.variant.cache = {0, spec::PageOrder::Nhd};
  layout = cacheLayoutsOf(build.variant).k;
  EXPECT_EQ(layout.tokenStride, 4 * 64);
  EXPECT_EQ(layout.headStride, 64);
}

} // namespace
} // namespace deft::exec
