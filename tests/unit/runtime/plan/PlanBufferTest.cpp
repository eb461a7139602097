#include "runtime/plan/PlanBuffer.h"

#include "runtime/plan/Deal.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <cstring>
#include <random>

namespace deft::plan {
namespace {

using tree::KvTree;

const VariantFacts kFacts{4, 2};

Plan somePlan(std::uint64_t seed = 5) {
  return mustPlan(placed(test::randomForest(seed, {60, 200, 60})), kFacts, makeConfig(64, {64, 16}), 8);
}

Plan dealtPlan() {
  config::Config config = makeConfig(0, {64});
  config.order = config::Order::Mixed;
  config.phases[0].family = config::Family::Sm90;
  Plan plan = mustVerify(placed(test::levelTree({1, 32}, {128, 40})), kFacts, config, 1);
  for (const abi::Item &item : plan.items)
    EXPECT_GT(item.dealtTiles, 0);
  return plan;
}

std::vector<std::byte> written(const Plan &plan) {
  std::vector<std::byte> buffer;
  writePlan(plan, buffer);
  return buffer;
}

TEST(PlanBufferTest, RoundTrip) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KvTree tree = placed(test::randomForest(seed));
    config::Config config = makeConfig(48, {64, 16});
    config.order = config::kAllOrders[seed % 3];
    Plan plan = mustPlan(tree, kFacts, config, 8);
    const std::vector<std::byte> buffer = written(plan);
    const auto read = readPlan(buffer);
    ASSERT_TRUE(read) << read.error().message;
    const auto verified = verify(*read, tree, kFacts, config);
    ASSERT_TRUE(verified) << verified.error().message;
    EXPECT_EQ(written(*read), buffer); // every field came back
  }
}

TEST(PlanBufferTest, APlanReadBackAdvances) {
  KvTree tree = test::levelTree({1, 3}, {50, 10});
  auto read = readPlan(written(mustPlan(tree, kFacts, makeConfig(0))));
  ASSERT_TRUE(read);
  ASSERT_TRUE(tree.append(2, 3));
  EXPECT_EQ(advance(tree, *read), Advance::Done);
  EXPECT_TRUE(verify(*read, tree, kFacts, makeConfig(0)));
}

TEST(PlanBufferTest, AStalePlanIsNoticed) {
  KvTree tree = test::levelTree({1, 3}, {50, 10});
  const auto header = readPlanHeader(written(mustPlan(tree, kFacts, makeConfig(0))));
  ASSERT_TRUE(header);
  EXPECT_FALSE(isStale(*header, tree));
  ASSERT_TRUE(tree.append(2, 1));
  EXPECT_TRUE(isStale(*header, tree));
}

TEST(PlanBufferTest, EveryTruncationIsRefused) {
  const std::vector<std::byte> buffer = written(somePlan());
  for (std::size_t size = 0; size < buffer.size(); ++size)
    ASSERT_FALSE(readPlan(std::span(buffer).first(size))) << size;
  std::vector<std::byte> longer = buffer;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(readPlan(longer));
}

TEST(PlanBufferTest, OtherVersionsAreRefused) {
  std::vector<std::byte> buffer = written(somePlan());
  PlanHeader header;
  std::memcpy(&header, buffer.data(), sizeof(header));
  header.version = 7;
  std::memcpy(buffer.data(), &header, sizeof(header));
  const auto read = readPlan(buffer);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "the plan buffer has version 7, this program reads 2");
  header.version = PlanHeader::kVersion;
  header.magic ^= 1;
  std::memcpy(buffer.data(), &header, sizeof(header));
  EXPECT_EQ(readPlan(buffer).error().message, "this is no plan buffer");
}

/// Whatever is damaged, what is read does not point out of the plan: walking it is the test, under sanitizers
/// above all.
void expectRefusedOrHarmless(const std::vector<std::byte> &sound) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> buffer = sound;
    const std::size_t at = random() % buffer.size() / 4 * 4;
    const auto value = static_cast<std::int32_t>(random() >> (random() % 64));
    std::memcpy(buffer.data() + at, &value, 4);
    const auto plan = readPlan(buffer);
    if (!plan) {
      ++refused;
      continue;
    }
    const std::vector<abi::Run> runs(plan->runs.begin(), plan->runs.end());
    long long sum = 0;
    for (const abi::Item &item : plan->items)
      for (int w = 0; item.dealtTiles != 0 && w < kDealtWarps; ++w)
        ASSERT_LT(runs.at(item.runBegin + w).dealtBegin, item.runCount);
    for (const abi::Item &item : plan->items)
      for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
        for (int q = runs.at(r).queryBegin; q < runs.at(r).queryEnd; ++q)
          sum += plan->callerIndex.at(item.queryBegin + q);
    for (std::size_t m = 0; m < plan->mergeQuery.size(); ++m)
      for (int s = plan->mergeBegin.at(m); s < plan->mergeBegin.at(m + 1); ++s)
        ASSERT_LT(plan->mergeSlot.at(s), plan->partialSlots);
    ASSERT_GE(sum, 0);
  }
  EXPECT_GT(refused, 10000);
}

TEST(PlanBufferTest, DamageIsRefusedOrHarmless) { expectRefusedOrHarmless(written(somePlan())); }

TEST(PlanBufferTest, DamageToDealtTokensIsRefusedOrHarmless) {
  expectRefusedOrHarmless(written(dealtPlan()));
}

TEST(PlanBufferTest, PartsAreAlignedAndFollowEachOther) {
  const std::vector<std::byte> buffer = written(somePlan());
  const auto header = readPlanHeader(buffer);
  ASSERT_TRUE(header);
  std::uint64_t end = sizeof(PlanHeader);
  for (const PlanHeader::Part &part : header->parts) {
    EXPECT_EQ(part.offset % kPlanAlignment, 0u);
    EXPECT_GE(part.offset, end);
    end = part.offset + part.count * sizeof(int);
  }
  EXPECT_LE(end, header->bytes);
}

} // namespace
} // namespace deft::plan
