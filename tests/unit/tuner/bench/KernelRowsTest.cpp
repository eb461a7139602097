#include "tuner/bench/KernelRows.h"

#include "runtime/tree/TreeSummary.h"
#include "tuner/workload/Workload.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

namespace deft::bench {
namespace {

std::vector<KernelRow> rowsWithPeers() {
  std::vector<KernelRow> rows;
  for (const auto suite : {fasttreeRows(), deftRows(), flatRows()})
    rows.insert(rows.end(), suite.begin(), suite.end());
  return rows;
}

TEST(KernelRowsTest, FortyFiveTwelveAndThreeRowsOfDifferentNames) {
  EXPECT_EQ(fasttreeRows().size(), 45u);
  EXPECT_EQ(deftRows().size(), 12u);
  EXPECT_EQ(flatRows().size(), 3u);
  std::set<std::string_view> names;
  for (const KernelRow &row : rowsWithPeers())
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  for (const auto suite : {otherRows(), windowRows(), raggedRows(), latentRows()})
    for (const KernelRow &row : suite)
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(KernelRowsTest, NoPeerIsBelowTheFloorNorSlowerThanTheFlatKernel) {
  for (const KernelRow &row : rowsWithPeers()) {
    EXPECT_GT(row.peerUs, row.floorUs) << row.name;
    EXPECT_GE(row.flatUs + 0.5, row.peerUs) << row.name; // recorded in whole microseconds
  }
}

/// The recorded floor is at least the read of the unique cache at the H200's rate: trees that were copied
/// wrongly do not fit it.
TEST(KernelRowsTest, GeneratedTreesFitTheRecordedFloors) {
  for (const KernelRow &row : rowsWithPeers()) {
    if (!row.workload.starts_with("levels"))
      continue;
    int queryHeads = 0, kvHeads = 0;
    ASSERT_EQ(std::sscanf(row.attention.data(), "h%d_%d", &queryHeads, &kvHeads), 2) << row.name;
    const auto workload = workload::make(row.workload, 1);
    ASSERT_TRUE(workload) << row.name << ": " << workload.error().message;
    const tree::TreeSummary summary = tree::summarize(workload->tree());
    const double bytes = 4.0 * summary.readTokens * kvHeads * 128;
    const double flops = 4.0 * summary.pathTokens * queryHeads * 128;
    const double readUs = bytes / 4704e3, productUs = flops / 744e6;
    EXPECT_GE(row.floorUs, std::max(readUs, productUs) * 0.97) << row.name;
    EXPECT_LE(row.floorUs, std::max(readUs, productUs) * 1.08 + 4.2) << row.name;
  }
}

TEST(KernelRowsTest, TreesWithoutPeersNeedNoRecordedFile) {
  for (const auto suite : {otherRows(), windowRows(), raggedRows(), latentRows(), variantRows()})
    for (const KernelRow &row : suite) {
      const auto workload = workload::make(row.workload, 1);
      ASSERT_TRUE(workload) << row.name << ": " << workload.error().message;
      EXPECT_GT(tree::summarize(workload->tree()).readTokens, 500) << row.name;
    }
}

TEST(KernelRowsTest, VariantTreesAreBoundByBytesAndByFlops) {
  int byFlops = 0;
  for (const KernelRow &row : variantRows()) {
    const auto workload = workload::make(row.workload, 1);
    ASSERT_TRUE(workload) << row.name;
    const tree::TreeSummary summary = tree::summarize(workload->tree());
    byFlops += 4.0 * summary.pathTokens * 32 * 128 / 744e6 > 4.0 * summary.readTokens * 8 * 128 / 4704e3;
  }
  EXPECT_EQ(byFlops, 3);
}

} // namespace
} // namespace deft::bench
