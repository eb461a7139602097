#include "runtime/c_api/PlanParts.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace deft::c {
namespace {

deft_plan_options optionsOf(std::size_t size = sizeof(deft_plan_options)) {
  deft_plan_options options{};
  options.size = size;
  return options;
}

TEST(PlanPartsTest, NothingGivenIsTheDefault) {
  const deft_plan_options zero = optionsOf();
  for (const deft_plan_options *given : {static_cast<const deft_plan_options *>(nullptr), &zero}) {
    const auto read = planOptionsOf(given);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->partition, std::nullopt);
    EXPECT_EQ(read->chunkTokens, std::nullopt);
    EXPECT_EQ(read->workers, 0);
    EXPECT_FALSE(read->invariant);
    EXPECT_FALSE(read->checkPlaces);
  }
  const auto gpu = gpuPlanOptionsOf(nullptr);
  ASSERT_TRUE(gpu);
  EXPECT_FALSE(gpu->followsLengths);
  EXPECT_FALSE(gpu->checksPages);
}

TEST(PlanPartsTest, EachPartitionHasItsNumber) {
  const std::pair<int, Partition> partitions[] = {
      {DEFT_PARTITION_QUERY, Partition::Query},          {DEFT_PARTITION_NODE, Partition::Node},
      {DEFT_PARTITION_NODE_CHUNK, Partition::NodeChunk}, {DEFT_PARTITION_FLATTEN, Partition::Flatten},
      {DEFT_PARTITION_CASCADE, Partition::Cascade},      {DEFT_PARTITION_GREEDY, Partition::Greedy},
      {DEFT_PARTITION_UNION, Partition::Union},          {DEFT_PARTITION_AUTO, Partition::Auto}};
  for (const auto &[number, partition] : partitions) {
    deft_plan_options options = optionsOf();
    options.partition = number;
    EXPECT_EQ(planOptionsOf(&options)->partition, partition) << number;
  }
  for (const int number : {-1, DEFT_PARTITION_AUTO + 1}) {
    deft_plan_options options = optionsOf();
    options.partition = number;
    const auto read = planOptionsOf(&options);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message, "deft_plan_options::partition is " + std::to_string(number) +
                                        ", not between 0 and " + std::to_string(DEFT_PARTITION_AUTO));
  }
}

TEST(PlanPartsTest, AChunkIsANumberOrFillsTheMachine) {
  deft_plan_options options = optionsOf();
  options.chunk_tokens = 512;
  EXPECT_EQ(planOptionsOf(&options)->chunkTokens, 512);
  options.chunk_tokens = DEFT_CHUNK_FILL;
  EXPECT_EQ(planOptionsOf(&options)->chunkTokens, 0);
}

/// What an older caller's struct does not reach is not read.
TEST(PlanPartsTest, OptionsEndWhereTheCallersDo) {
  deft_plan_options options = optionsOf(offsetof(deft_plan_options, workers));
  options.chunk_tokens = 64;
  options.workers = 99;
  const auto read = planOptionsOf(&options);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->chunkTokens, 64);
  EXPECT_EQ(read->workers, 0);
}

TEST(PlanPartsTest, OptionsOfGpusHaveThoseOfPlans) {
  deft_plan_options plan = optionsOf();
  plan.is_invariant = 1;
  plan.checks_places = 1;
  deft_gpu_plan_options options{};
  options.size = sizeof options;
  options.plan = &plan;
  options.runs_ahead = 3;
  options.budget = 64;
  options.checks_pages = 1;
  const auto read = gpuPlanOptionsOf(&options);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->plan.invariant);
  EXPECT_TRUE(read->plan.checkPlaces);
  EXPECT_EQ(read->runsAhead, 3);
  EXPECT_EQ(read->budget, 64);
  EXPECT_TRUE(read->checksPages);
  plan.partition = -7;
  EXPECT_FALSE(gpuPlanOptionsOf(&options)) << "a fault of the plan's is one of theirs";
}

TEST(PlanPartsTest, FactsAreGivenToWhoAsksForThem) {
  deft_advanced advanced{};
  for (const auto &[from, to] : {std::pair(Advanced::Nothing, DEFT_ADVANCED_NOTHING),
                                 {Advanced::InPlace, DEFT_ADVANCED_IN_PLACE},
                                 {Advanced::Remade, DEFT_ADVANCED_REMADE}}) {
    ASSERT_TRUE(giveAdvanced(from, &advanced));
    EXPECT_EQ(advanced, to);
    EXPECT_TRUE(giveAdvanced(from, nullptr));
  }
  EXPECT_FALSE(giveAdvanced(usage("wrong"), &advanced));
  EXPECT_EQ(advanced, DEFT_ADVANCED_REMADE) << "as it was";
  PlanSummary summary;
  summary.tokensRead = 1LL << 40;
  summary.items = 7;
  summary.directItems = 3;
  summary.partials = 5;
  deft_plan_summary known{};
  known.size = sizeof known;
  ASSERT_TRUE(giveSummary(summary, &known));
  EXPECT_EQ(known.tokens_read, 1LL << 40);
  EXPECT_EQ(known.items, 7);
  EXPECT_EQ(known.direct_items, 3);
  EXPECT_EQ(known.partials, 5);
  EXPECT_EQ(known.size, sizeof known);
}

} // namespace
} // namespace deft::c
