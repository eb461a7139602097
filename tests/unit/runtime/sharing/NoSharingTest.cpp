/// Requests that share nothing are planned as trees that nobody looked for sharing in.

#include "compiler/config/Config.h"
#include "runtime/plan/Planner.h"
#include "runtime/sharing/Batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace deft::sharing {
namespace {

constexpr int kPageSize = 16, kRow = 64, kRequests = 48;

template <typename List> bool areSame(const List &one, const List &other) {
  return one.size() == other.size() &&
         std::memcmp(one.data(), other.data(), one.size() * sizeof(*one.data())) == 0;
}

TEST(NoSharingTest, PlansAreThoseOfIndependentTrees) {
  std::vector<int> entries(kRequests * kRow), lengths;
  std::iota(entries.begin(), entries.end(), 0);
  tree::KvTree apart;
  for (int i = 0; i < kRequests; ++i) {
    lengths.push_back(200 + 13 * i);
    const int node = apart.addNode(-1, lengths.back(), i * kRow * kPageSize).value();
    ASSERT_TRUE(apart.addQuery(node));
  }
  Batch batch(PageSize(kPageSize), false);
  const PageTable table{.entries = entries, .rowStride = kRow};
  ASSERT_TRUE(batch.update({.table = table, .lengths = lengths}));
  EXPECT_EQ(batch.tree().nodes(), apart.nodes());
  EXPECT_EQ(batch.tree().queries(), apart.queries());

  const plan::VariantFacts facts{.ratio = 4, .kvHeads = 8, .pageSize = kPageSize, .trimStep = 16};
  for (const spec::Partition partition :
       {spec::Partition::Query, spec::Partition::Node, spec::Partition::Greedy, spec::Partition::Union,
        spec::Partition::Auto}) {
    config::Config config;
    config.partition = partition;
    config.phases.resize(1);
    const auto one = plan::makePlan(batch.tree(), facts, config, 132);
    const auto other = plan::makePlan(apart, facts, config, 132);
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->partition, other->partition);
    EXPECT_TRUE(areSame(one->items, other->items));
    EXPECT_TRUE(areSame(one->runs, other->runs));
    EXPECT_EQ(one->mergeSlot, other->mergeSlot);
  }
}

} // namespace
} // namespace deft::sharing
