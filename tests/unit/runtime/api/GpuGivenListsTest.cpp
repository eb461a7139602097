// Sparse runs that are handed their lists (rule K7), on the GPU of the tests' driver.
#include "templates/deft/abi.h"
#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace deft {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Queries that share nothing but a plan: where tokens are comes with each run.
class GpuGivenListsTest : public testing::Test {
protected:
  static constexpr int kHeads = 4, kDim = 512, kKey = kDim + 64, kPage = 16, kPages = 4, kQueries = 3;
  static constexpr int kSlots = kPages * kPage, kBudget = 40;

  GpuGivenListsTest() {
    fake_cuda::setVariant({.queryHeads = kHeads,
                           .kvHeads = 1,
                           .headDim = kDim,
                           .pageSize = kPage,
                           .isBf16 = true,
                           .scale = 0.05f,
                           .worthGroups = 1,
                           .lists = 1,
                           .latentDim = kKey});
    std::normal_distribution<float> normal;
    for (int i = 0; i < kQueries * kHeads * kKey; ++i)
      q_.data()[i] = toBf16(normal(random_));
    for (int i = 0; i < kSlots * kKey; ++i)
      k_.data()[i] = toBf16(normal(random_));
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    const int root = tree_.addRoot(1, 0).value();
    for (int i = 0; i < kQueries; ++i)
      (void)tree_.addQuery(root).value();
    drawLists(lists_, kBudget);
  }

  /// Slots of the cache, of which some are there twice, and holes; the last query has none.
  void drawLists(std::vector<int> &lists, int budget) {
    lists.assign(static_cast<std::size_t>(kQueries * budget), -1);
    for (int i = 0; i < (kQueries - 1) * budget; ++i)
      if (random_() % 4 != 0)
        lists[static_cast<std::size_t>(i)] = static_cast<int>(random_() % kSlots);
  }

  GpuPlan planWith(int budget, bool checksPages = false) {
    GpuPlan plan = GpuPlan::make(attention_, tree_, {.checksPages = checksPages, .budget = budget}).value();
    plan.upload(stream_).value();
    return plan;
  }
  GpuInputs inputs() {
    return {.q = q_.data(), .k = k_.data(), .cachePages = kPages, .lists = lists_.data(), .budget = kBudget};
  }
  GpuOutputs outputs() { return {.out = out_.data(), .lse = lse_.data()}; }
  std::string errorOf(const Result<void> &result) { return result ? "" : result.error().message; }

  bool isRight(const std::vector<int> &lists, int budget) {
    for (int query = 0; query < kQueries; ++query)
      for (int head = 0; head < kHeads; ++head)
        if (!isRowRight(lists.data() + query * budget, budget, query * kHeads + head))
          return false;
    std::fill_n(out_.data(), kQueries * kHeads * kDim, std::uint16_t{0xffff});
    return true;
  }
  bool isRowRight(const int *list, int budget, int row) {
    std::vector<double> sum(kDim);
    double weights = 0;
    for (int i = 0; i < budget; ++i) {
      if (list[i] < 0)
        continue;
      const auto *token = k_.data() + list[i] * kKey;
      double score = 0;
      for (int d = 0; d < kKey; ++d)
        score += static_cast<double>(fromBf16(q_.data()[row * kKey + d])) * fromBf16(token[d]);
      const double weight = std::exp(0.05 * score);
      weights += weight;
      for (int d = 0; d < kDim; ++d)
        sum[static_cast<std::size_t>(d)] += weight * fromBf16(token[d]);
    }
    const float lse = lse_[static_cast<std::size_t>(row)];
    if (weights == 0)
      return std::isinf(lse) && lse < 0 &&
             std::all_of(
                 out_.data() + row * kDim, out_.data() + (row + 1) * kDim,
                 [](std::uint16_t bits) { return fromBf16(bits) == 0; });
    if (!(std::abs(lse - std::log(weights)) < 1e-3))
      return false;
    for (int d = 0; d < kDim; ++d) {
      const double exact = sum[static_cast<std::size_t>(d)] / weights;
      if (!(std::abs(fromBf16(out_.data()[row * kDim + d]) - exact) < 0.01 + 0.01 * std::abs(exact)))
        return false;
    }
    return true;
  }

  std::mt19937 random_{5};
  Memory q_{kQueries * kHeads * kKey}, k_{kSlots * kKey}, out_{kQueries * kHeads * kDim};
  std::vector<float> lse_ = std::vector<float>(kQueries * kHeads);
  std::vector<int> lists_;
  Tree tree_;
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ =
      GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GIVEN_LISTS_PACKAGE).value()).value();
  void *stream_ = nullptr;
};

TEST_F(GpuGivenListsTest, EachRunReadsItsOwn) {
  GpuPlan plan = planWith(kBudget);
  for (int layer = 0; layer < 3; ++layer) {
    drawLists(lists_, kBudget);
    ASSERT_EQ(errorOf(plan.runSparse(attention_, inputs(), outputs(), stream_)), "");
    EXPECT_TRUE(isRight(lists_, kBudget)) << "layer " << layer;
  }
}

TEST_F(GpuGivenListsTest, ListsOfTheOtherBudgetAreReadToo) {
  constexpr int kLong = 600;
  GpuPlan plan = planWith(kLong);
  drawLists(lists_, kLong);
  GpuInputs given = inputs();
  given.lists = lists_.data(), given.budget = kLong;
  ASSERT_EQ(errorOf(plan.runSparse(attention_, given, outputs(), stream_)), "");
  EXPECT_TRUE(isRight(lists_, kLong));
}

TEST_F(GpuGivenListsTest, AGraphReadsWhatListsHoldByThen) {
  GpuPlan plan = planWith(kBudget);
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  const auto captured = plan.runSparse(attention_, inputs(), outputs(), stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(errorOf(captured), "");
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  for (int step = 0; step < 2; ++step) {
    std::vector<int> others;
    drawLists(others, kBudget);
    std::copy(others.begin(), others.end(), lists_.begin());
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    EXPECT_TRUE(isRight(lists_, kBudget));
  }
}

/// The plan knows by how much. 384 queries on one path, 16 in a union, save more tokens than unions cost.
TEST_F(GpuGivenListsTest, ListsThatOverlapAreReadAsOne) {
  constexpr int kMany = 384, kLong = 600;
  Tree tree;
  const int root = tree.addRoot(1, 0).value();
  for (int i = 0; i < kMany; ++i)
    (void)tree.addQuery(root).value();
  Memory q(kMany * kHeads * kKey), out(kMany * kHeads * kDim);
  std::normal_distribution<float> normal;
  for (int i = 0; i < kMany * kHeads * kKey; ++i)
    q.data()[i] = toBf16(normal(random_));
  std::vector<int> lists;
  for (int i = 0; i < kMany * kLong; ++i) // each slot several times
    lists.push_back(static_cast<int>(random_() % (kSlots + 1)) - 1);
  std::vector<float> lse(kMany * kHeads), lseOfUnions(kMany * kHeads);
  const auto kernelsOf = [&](int overlap, std::vector<float> &to) {
    GpuPlan plan = GpuPlan::make(attention_, tree, {.budget = kLong, .listOverlap = overlap}).value();
    plan.upload(stream_).value();
    (void)fake_cuda::takeCalls();
    const GpuInputs given{
        .q = q.data(), .k = k_.data(), .cachePages = kPages, .lists = lists.data(), .budget = kLong};
    EXPECT_EQ(errorOf(plan.runSparse(attention_, given, {.out = out.data(), .lse = to.data()}, stream_)), "");
    std::vector<std::string> names;
    for (const auto &call : fake_cuda::takeCalls())
      if (!call.kernel.empty())
        names.push_back(call.kernel);
    return names;
  };
  const auto areRead = testing::Contains("deft_host_given_lists_sparse");
  EXPECT_THAT(kernelsOf(0, lse), areRead);
  EXPECT_THAT(kernelsOf(80, lse), areRead) << "too little is saved";
  EXPECT_THAT(kernelsOf(90, lseOfUnions),
              testing::AllOf(testing::Contains("deft_host_given_lists_unite"),
                             testing::Contains("deft_host_given_lists_united"),
                             testing::Not(testing::Contains("deft_host_given_lists_sparse"))));
  for (std::size_t row = 0; row < lse.size(); ++row)
    EXPECT_NEAR(lseOfUnions[row], lse[row], 1e-3) << "row " << row;
  EXPECT_THAT(GpuPlan::make(attention_, tree, {.budget = kLong, .listOverlap = 101}).error().message,
              HasSubstr("is 101, not between 0 and 100"));
}

TEST_F(GpuGivenListsTest, SlotsThatTheCacheLacksAreToldWherePlansLook) {
  GpuPlan looking = planWith(kBudget, true);
  ASSERT_EQ(errorOf(looking.runSparse(attention_, inputs(), outputs(), stream_)), "");
  EXPECT_TRUE(looking.checkReplays());
  const int wrong = std::exchange(lists_[kBudget + 3], kSlots);
  // The tests' driver does read there, within the memory of the page behind.
  Memory larger(2 * kSlots * kKey);
  std::copy_n(k_.data(), kSlots * kKey, larger.data());
  GpuInputs given = inputs();
  given.k = larger.data();
  ASSERT_EQ(errorOf(looking.runSparse(attention_, given, outputs(), stream_)), "");
  EXPECT_EQ(errorOf(looking.checkReplays()),
            "a run read a list that has 64 for query 1, and the cache has 64 slots");
  EXPECT_TRUE(looking.checkReplays()) << "told once";
  lists_[kBudget + 3] = wrong;
}

TEST_F(GpuGivenListsTest, WhatDoesNotFitIsNamed) {
  GpuPlan plan = planWith(kBudget);
  (void)fake_cuda::takeCalls();
  GpuInputs given = inputs();
  given.lists = nullptr;
  EXPECT_EQ(errorOf(plan.runSparse(attention_, given, outputs(), stream_)),
            "pageTable is null, and the cache of `host_given_lists` is paged");
  given = inputs();
  given.budget = 600;
  EXPECT_EQ(errorOf(plan.runSparse(attention_, given, outputs(), stream_)),
            "lists has 600 slots a query, and the plan's budget is 40");
  given.budget = 41;
  EXPECT_EQ(errorOf(plan.runSparse(attention_, given, outputs(), stream_)),
            "lists is [3, 41], and a budget of 41 is none of `host_given_lists`'s: 40, 600");
  given = inputs();
  given.settings.check_finite = 1;
  EXPECT_EQ(errorOf(plan.runSparse(attention_, given, outputs(), stream_)),
            "RunSettings::check_finite is not 0, and a run over a caller's lists looks at no values");
  EXPECT_THAT(errorOf(plan.run(attention_, inputs(), outputs(), stream_)),
              HasSubstr("lists is given, and only sparse runs read lists"));
  given = inputs();
  given.lists = nullptr;
  std::vector<int> table = {0};
  given.pageTable = table.data();
  EXPECT_EQ(errorOf(plan.runSelecting(attention_, given, outputs(), stream_)),
            "`host_given_lists` selects nothing: its lists are by `caller`");
  EXPECT_EQ(Selection::make(attention_.attention()).error().message,
            "`host_given_lists` selects nothing: its lists are by `caller`");
  EXPECT_THAT(fake_cuda::takeCalls(), IsEmpty());
  GpuPlan without = planWith(0);
  EXPECT_EQ(errorOf(without.runSparse(attention_, inputs(), outputs(), stream_)),
            "the plan was made without a budget, for runs that do not select");
}

} // namespace
} // namespace deft
