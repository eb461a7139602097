// Requests with drafts on a CPU, by the public headers alone.
#include "tests/support/DraftTrees.h"

#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace deft {
namespace {

using testing::HasSubstr;

constexpr int kPageSize = 16, kRow = 24, kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64, kMostDrafts = 256;

std::size_t index(int i) { return static_cast<std::size_t>(i); }
float wide(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

/// Requests that share a prompt of two pages, with drafts behind their tokens.
class DraftsApiTest : public testing::Test {
protected:
  DraftsApiTest() {
    std::normal_distribution<float> normal;
    for (std::vector<std::uint16_t> *values : {&k_, &v_, &q_})
      for (std::uint16_t &value : *values)
        value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random_)) >> 16);
  }

  /// Requests with these trees, each with some tokens.
  void begin(const std::vector<test::DraftParents> &trees) {
    trees_ = trees;
    table_.clear(), lengths_.clear(), drafts_.clear(), bits_.clear();
    int page = 2;
    rows_ = 1;
    for (const test::DraftParents &tree : trees)
      rows_ = std::max(rows_, static_cast<int>(tree.size()));
    for (const test::DraftParents &tree : trees) {
      for (int p = 0; p < kRow; ++p)
        table_.push_back(p < 2 ? p : page++);
      lengths_.push_back(32 + static_cast<int>(random_() % 60));
      drafts_.push_back(static_cast<int>(tree.size()));
      const auto mask = test::maskOf(tree, rows_, random_);
      bits_.insert(bits_.end(), mask.begin(), mask.end());
    }
    batch_.update(requests()).value();
  }

  PageTable table() const { return {.entries = table_, .rowStride = kRow}; }
  PagedRequests requests() const { return {.table = table(), .lengths = lengths_, .drafts = drafts_}; }
  DraftMask mask() const { return {.bits = bits_.data(), .drafts = rows_}; }

  Result<void> run(const Plan &plan) {
    out_.assign(index(plan.queryCount() * kQueryHeads * kHeadDim), 0xffff);
    lse_.assign(index(plan.queryCount() * kQueryHeads), NAN);
    return runtime_.run(attention_, plan,
                        {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = table_},
                        {.out = out_.data(), .lse = lse_.data()});
  }

  /// Each draft alone, token by token, as the table and its tree say.
  void expectRight() {
    int query = 0;
    for (int r = 0; r < static_cast<int>(trees_.size()); ++r)
      for (int draft = 0; draft < drafts_[index(r)]; ++draft, ++query) {
        std::vector<int> positions; // in the row
        for (int t = 0; t < lengths_[index(r)]; ++t)
          positions.push_back(t);
        for (int other = 0; other < drafts_[index(r)]; ++other)
          if (test::doesSee(trees_[index(r)], draft, other))
            positions.push_back(lengths_[index(r)] + other);
        for (int head = 0; head < kQueryHeads; ++head)
          ASSERT_TRUE(isRowRight(r, query, head, positions)) << "request " << r << ", draft " << draft;
      }
    EXPECT_EQ(out_.size(), index(query * kQueryHeads * kHeadDim));
  }
  bool isRowRight(int request, int query, int head, const std::vector<int> &positions) {
    const int row = query * kQueryHeads + head;
    std::vector<double> sum(kHeadDim);
    double weights = 0;
    for (const int t : positions) {
      const int page = table_[index(request * kRow + t / kPageSize)];
      const int token = ((page * kPageSize + t % kPageSize) * kKvHeads + head / 2) * kHeadDim;
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += double{wide(q_[index(row * kHeadDim + d)])} * wide(k_[index(token + d)]);
      const double weight = std::exp(0.25 * score);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sum[index(d)] += weight * wide(v_[index(token + d)]);
    }
    bool isRight = std::abs(lse_[index(row)] - std::log(weights)) < 1e-3;
    for (int d = 0; d < kHeadDim; ++d) {
      const double exact = sum[index(d)] / weights;
      isRight =
          isRight && std::abs(wide(out_[index(row * kHeadDim + d)]) - exact) < 0.01 + 0.01 * std::abs(exact);
    }
    return isRight;
  }

  std::mt19937 random_{11};
  std::vector<test::DraftParents> trees_;
  std::vector<int> table_, lengths_, drafts_;
  std::vector<std::uint32_t> bits_;
  int rows_ = 0; ///< of a request in the mask
  std::vector<std::uint16_t> q_ = std::vector<std::uint16_t>(index(4 * kMostDrafts * kQueryHeads * kHeadDim));
  std::vector<std::uint16_t> k_ = std::vector<std::uint16_t>(
                                 index(5 * kRow * kPageSize * kKvHeads * kHeadDim)),
                             v_ = k_, out_;
  std::vector<float> lse_;
  Attention attention_ = loadPackage(DEFT_TEST_PACKAGE).value();
  Runtime runtime_ = Runtime::create({.threads = 2}).value();
  PagedBatch batch_ = PagedBatch::make({.pageSize = kPageSize}).value();
};

TEST_F(DraftsApiTest, DecodersTreesAreRightInEveryPartition) {
  begin({test::eagleTree(random_), test::jetSpecTree(128, random_), test::draftChain(1)});
  for (const auto partition : {Partition::Query, Partition::Node, Partition::NodeChunk, Partition::Flatten,
                               Partition::Cascade, Partition::Greedy, Partition::Union, Partition::Auto}) {
    SCOPED_TRACE(static_cast<int>(partition));
    Plan plan = batch_.plan(attention_, {.partition = partition}).value();
    plan.draft(mask()).value();
    run(plan).value();
    ASSERT_NO_FATAL_FAILURE(expectRight());
  }
  begin({test::jetSpecTree(255, random_), {}, test::draftStar(256)});
  Plan plan = batch_.plan(attention_).value();
  plan.draft(mask()).value();
  run(plan).value();
  expectRight();
}

// Accepted drafts become tokens, new ones come behind them, and requests come and go.
TEST_F(DraftsApiTest, StepsOfASpeculativeDecoder) {
  begin({test::eagleTree(random_), test::eagleTree(random_), test::draftChain(5), test::draftStar(1)});
  Plan plan = batch_.plan(attention_).value();
  for (int step = 0; step < 8; ++step) {
    if (step == 5) {
      for (auto *of : {&lengths_, &drafts_})
        of->erase(of->begin() + 1);
      trees_.erase(trees_.begin() + 1);
      table_.erase(table_.begin() + kRow, table_.begin() + 2 * kRow);
    }
    bits_.clear();
    for (std::size_t r = 0; r < trees_.size(); ++r) {
      lengths_[r] += step == 0 ? 0 : 1 + static_cast<int>(random_() % 5);
      trees_[r] = test::renumbered(trees_[r], random_);
      const auto mask = test::maskOf(trees_[r], rows_, random_);
      bits_.insert(bits_.end(), mask.begin(), mask.end());
    }
    if (step % 2 == 1)
      batch_.update(requests()).value();
    else
      batch_.grow(table(), lengths_).value();
    EXPECT_FALSE(plan.isCurrent());
    plan.advance(batch_.tree()).value();
    plan.draft(mask()).value();
    run(plan).value();
    ASSERT_NO_FATAL_FAILURE(expectRight()) << "step " << step;
  }
  // Without drafts again.
  drafts_.clear();
  batch_.update(requests()).value();
  plan.advance(batch_.tree()).value();
  EXPECT_EQ(plan.queryCount(), 3);
  run(plan).value();
}

TEST_F(DraftsApiTest, AStepWithoutADraftHasNoQueriesWhateverTheOneBeforeHad) {
  begin({test::draftChain(1), test::draftChain(2)});
  Plan plan = batch_.plan(attention_).value();
  const auto queriesWith = [&](const std::vector<int> &drafts) {
    drafts_ = drafts;
    batch_.update(requests()).value();
    plan.advance(batch_.tree()).value();
    return plan.queryCount();
  };
  EXPECT_EQ(queriesWith({0, 0}), 0);
  EXPECT_EQ(queriesWith({}), 2) << "of requests, one each";
  EXPECT_EQ(queriesWith({0, 0}), 0);
  EXPECT_EQ(queriesWith({0, 2}), 2);
}

TEST_F(DraftsApiTest, TheSummaryCountsNoStandIns) {
  begin({test::draftChain(100), test::draftChain(3)});
  EXPECT_EQ(batch_.summary().requestTokens, lengths_[0] + lengths_[1]);
  EXPECT_EQ(batch_.summary().tokens, lengths_[0] + lengths_[1] - 2 * kPageSize);
}

TEST_F(DraftsApiTest, WhatIsWrongIsSaid) {
  begin({test::draftChain(40), test::draftChain(3)});
  Plan plan = batch_.plan(attention_).value();
  const auto messageOf = [](const auto &result) { return result ? "none" : result.error().message; };
  EXPECT_EQ(messageOf(run(plan)), "the plan does not know yet which drafts see which");
  EXPECT_EQ(messageOf(plan.draft({})), "DraftMask::bits is null");
  EXPECT_EQ(messageOf(plan.draft({.bits = bits_.data(), .drafts = 39})),
            "DraftMask::bits has 39 drafts of a request, and request 0 has 40");
  EXPECT_EQ(messageOf(plan.draft({.bits = bits_.data(), .drafts = 40, .requests = 1})),
            "the mask is for 1 requests, and request 1 has drafts");
  const std::vector<std::uint32_t> before = bits_;
  bits_[index((rows_ + 2) * 2)] ^= 1; // draft 2 of request 1 sees 1, and not 0 as that one does
  EXPECT_EQ(messageOf(plan.draft(mask())), "bits[1][2] is not a row of a tree of drafts");
  EXPECT_FALSE(run(plan));
  bits_ = before;
  std::vector<int> lengths = lengths_;
  DraftMask with = mask();
  with.lengths = lengths.data();
  EXPECT_TRUE(plan.draft(with));
  ++lengths[1];
  EXPECT_THAT(messageOf(plan.draft(with)),
              HasSubstr("request 1 had " + std::to_string(lengths[1]) + " tokens"));
  std::vector<int> depths(index(2 * rows_), 0);
  with = mask();
  with.depths = depths.data();
  EXPECT_TRUE(plan.draft(with));
  depths[5] = 40;
  EXPECT_THAT(messageOf(plan.draft(with)), HasSubstr("bits[0][5] is not a row"));
  EXPECT_TRUE(plan.draft(mask()));
  EXPECT_TRUE(run(plan));
  batch_.update(requests()).value();
  EXPECT_THAT(messageOf(plan.draft(mask())), HasSubstr("stale"));

  EXPECT_THAT(messageOf(batch_.plan(attention_, {.invariant = true})), HasSubstr("invariant"));
  drafts_[1] = 257;
  EXPECT_EQ(messageOf(batch_.update(requests())), "request 1: 257 drafts, must be 0 to 256");
  drafts_[1] = 3;
  const int length = std::exchange(lengths_[1], kRow * kPageSize - 2);
  EXPECT_EQ(messageOf(batch_.update(requests())),
            "request 1: 382 tokens and 3 drafts are in 25 pages, row 1 has room for 24");
  lengths_[1] = length;
  table_[index(kRow + (lengths_[1] + 2) / kPageSize)] = -1;
  EXPECT_THAT(messageOf(batch_.update(requests())), HasSubstr("is -1"));
  drafts_.pop_back();
  EXPECT_EQ(messageOf(batch_.update(requests())),
            "PagedRequests::drafts has 1 entries, for 2 requests it has 2");
  const std::vector<int> indptr{0, 1, 2};
  drafts_.push_back(3);
  EXPECT_EQ(messageOf(batch_.update(
                {.table = table(), .lengths = lengths_, .queryIndptr = indptr, .drafts = drafts_})),
            "there are drafts and a query_indptr");

  Tree plain;
  plain.addQuery(plain.addRoot(20, 0).value()).value();
  Plan other = Plan::make(attention_, plain).value();
  EXPECT_EQ(messageOf(other.draft(mask())), "the plan has no requests with drafts");
}

} // namespace
} // namespace deft
