#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace deft {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kPageSize = 16, kRow = 6, kPages = 32, kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64;

/// Three requests with a prompt of two pages, in the rows of a table.
class PagedBatchTest : public testing::Test {
protected:
  PagedBatchTest() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::vector<std::uint16_t> *values : {&k_, &v_, &q_})
      for (std::uint16_t &value : *values) {
        const float full = normal(random);
        std::uint32_t bits;
        std::memcpy(&bits, &full, sizeof bits);
        value = static_cast<std::uint16_t>(bits >> 16);
      }
    write(0, {3, 7, 9, 2});
    write(1, {3, 7, 4, 11});
    write(2, {3, 7, 5, 12});
    batch_.update(requests()).value();
  }

  void write(int row, const std::vector<int> &pages) {
    std::copy(pages.begin(), pages.end(), table_.begin() + row * kRow);
  }
  PageTable table() const { return {.entries = table_, .rowStride = kRow}; }
  PagedRequests requests() const {
    return {.table = table(), .lengths = lengths_, .queryIndptr = queryIndptr_, .ids = ids_};
  }

  /// The rows of q that belong to a tree, as floats would be: out and lse of all of them.
  struct Computed {
    std::vector<std::uint16_t> out;
    std::vector<float> lse;
  };
  Computed compute(const Plan &plan) {
    Computed computed;
    computed.out.assign(static_cast<std::size_t>(plan.queryCount() * kQueryHeads * kHeadDim), 0xffff);
    computed.lse.assign(static_cast<std::size_t>(plan.queryCount() * kQueryHeads), NAN);
    const auto ran =
        runtime_.run(attention_, plan, {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = table_},
                     {.out = computed.out.data(), .lse = computed.lse.data()});
    EXPECT_TRUE(ran) << ran.error().text();
    return computed;
  }

  /// Each request as a tree of its own, in its own row, read by itself.
  Tree apart() const {
    Tree tree;
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      const int node = tree.addRoot(lengths_[i], static_cast<int>(i) * kRow * kPageSize).value();
      const int queries = queryIndptr_.empty() ? 1 : queryIndptr_[i + 1] - queryIndptr_[i];
      for (int q = 0; q < queries; ++q)
        tree.addQuery(node, std::max(lengths_[i] - queries + 1 + q, 0)).value();
    }
    return tree;
  }

  void expectAsApart(const Plan &plan) {
    const Tree apart = this->apart();
    const Computed one = compute(plan), other = compute(Plan::make(attention_, apart).value());
    ASSERT_EQ(one.out.size(), other.out.size());
    const auto value = [](std::uint16_t half) {
      const std::uint32_t bits = std::uint32_t{half} << 16;
      float wide;
      std::memcpy(&wide, &bits, sizeof wide);
      return wide;
    };
    for (std::size_t i = 0; i < one.out.size(); ++i)
      ASSERT_NEAR(value(one.out[i]), value(other.out[i]), 0x1p-6) << i; // of values about 1, in bf16
    for (std::size_t i = 0; i < one.lse.size(); ++i)
      ASSERT_TRUE(one.lse[i] == other.lse[i] || std::abs(one.lse[i] - other.lse[i]) < 1e-4) << i;
  }

  std::vector<int> table_ = std::vector<int>(8 * kRow, -1), lengths_ = {40, 36, 50}, queryIndptr_;
  std::vector<std::uint64_t> ids_ = {10, 11, 12};
  std::vector<std::uint16_t> q_ = std::vector<std::uint16_t>(16 * kQueryHeads * kHeadDim);
  std::vector<std::uint16_t> k_ = std::vector<std::uint16_t>(kPages * kPageSize * kKvHeads * kHeadDim),
                             v_ = k_;
  Attention attention_ = loadPackage(DEFT_TEST_PACKAGE).value();
  Runtime runtime_ = Runtime::create({.threads = 2}).value();
  PagedBatch batch_ = PagedBatch::make({.pageSize = kPageSize}).value();
};

TEST_F(PagedBatchTest, ReadsEachSharedTokenOnce) {
  EXPECT_EQ(batch_.summary().requests, 3);
  EXPECT_EQ(batch_.summary().requestTokens, 126);
  EXPECT_EQ(batch_.summary().tokens, 126 - 2 * 32);
  const Plan plan = batch_.plan(attention_, {.partition = Partition::Node}).value();
  EXPECT_EQ(plan.summary().tokensRead, 126 - 2 * 32);
  expectAsApart(plan);
}

TEST_F(PagedBatchTest, StepsOfADecodeLoop) {
  Plan plan = batch_.plan(attention_, {.checkPlaces = true}).value(); // no two nodes lie in the same places
  int inPlace = 0;
  for (int step = 0; step < 10; ++step) {
    for (int &length : lengths_)
      ++length;
    if (step == 4) { // one ends, its row is another's at once, and one comes behind
      write(0, {3, 7, 5, 6});
      ids_[0] = 20;
      lengths_[0] = 55;
      write(3, {8});
      ids_.push_back(21), lengths_.push_back(1);
      batch_.update(requests()).value();
    } else {
      batch_.grow(table(), lengths_).value();
    }
    EXPECT_FALSE(plan.isCurrent());
    inPlace += plan.advance(batch_.tree()).value() == Advanced::InPlace;
    ASSERT_NO_FATAL_FAILURE(expectAsApart(plan)) << "step " << step;
  }
  EXPECT_EQ(inPlace, 9);
}

TEST_F(PagedBatchTest, SeveralQueriesSeeEachUpToItsOwnToken) {
  queryIndptr_ = {0, 6, 7, 9};
  batch_.update(requests()).value();
  expectAsApart(batch_.plan(attention_).value());
}

TEST_F(PagedBatchTest, PaddingGivesZero) {
  lengths_.push_back(0), ids_.push_back(13);
  batch_.update(requests()).value();
  const Computed computed = compute(batch_.plan(attention_).value());
  EXPECT_THAT(std::span(computed.out).last(kQueryHeads * kHeadDim), Each(0));
  EXPECT_THAT(std::span(computed.lse).last(kQueryHeads), Each(-INFINITY));
}

TEST_F(PagedBatchTest, WithoutSharingItIsTheTreeOfIndependentRequests) {
  write(1, {13, 14, 4, 11});
  write(2, {15, 16, 5, 12});
  ids_ = {1, 2, 3};
  lengths_ = {40, 36, 50};
  batch_.update(requests()).value();
  Tree tree;
  for (int i = 0; i < 3; ++i) {
    const int node = tree.addRoot(lengths_[static_cast<std::size_t>(i)], i * kRow * kPageSize).value();
    tree.addQuery(node).value();
  }
  PagedBatch fresh = PagedBatch::make({.pageSize = kPageSize}).value();
  fresh.update(requests()).value();
  EXPECT_EQ(fresh.tree().json(), tree.json());
  const Plan plan = fresh.plan(attention_).value(), plain = Plan::make(attention_, tree).value();
  EXPECT_EQ(plan.choice().treeClass, plain.choice().treeClass);
  EXPECT_EQ(plan.summary().items, plain.summary().items);
  EXPECT_EQ(plan.summary().partials, plain.summary().partials);
  EXPECT_EQ(plan.summary().tokensRead, plain.summary().tokensRead);
  const Computed one = compute(plan), other = compute(plain);
  EXPECT_EQ(one.out, other.out);
  EXPECT_EQ(one.lse, other.lse);
}

TEST_F(PagedBatchTest, RowsBackToBack) {
  const std::vector<int> entries = {3, 7, 9, 3, 7, 4, 3, 7, 5, 12}, indptr = {0, 3, 6, 10}, last = {8, 4, 2};
  PagedBatch packed = PagedBatch::make({.pageSize = kPageSize}).value();
  packed.update({.table = {.entries = entries, .indptr = indptr}, .lastPageLengths = last}).value();
  EXPECT_EQ(packed.summary().requestTokens, 126);
  EXPECT_EQ(packed.summary().tokens, 62);
  const Computed evenly = compute(batch_.plan(attention_).value());
  table_ = entries;
  EXPECT_EQ(compute(packed.plan(attention_).value()).out, evenly.out);
}

TEST_F(PagedBatchTest, WrongStepsSayWhichRequestAndChangeNothing) {
  const auto why = [&] {
    const auto updated = batch_.update(requests());
    return updated ? "none" : updated.error().message;
  };
  const Plan plan = batch_.plan(attention_).value();
  lengths_[1] = 100;
  EXPECT_EQ(why(), "request 1: 100 tokens are in 7 pages, row 1 has room for 6");
  lengths_[1] = 80;
  EXPECT_EQ(why(), "request 1: page 4 of row 1 is -1, and 80 tokens are in 5 pages");
  lengths_[1] = 36;
  queryIndptr_ = {0, 1, 38, 39};
  EXPECT_EQ(why(), "request 1: 37 queries, but only 36 tokens");
  queryIndptr_.clear();
  ids_[2] = 10;
  EXPECT_EQ(why(), "request 2: its id 10 is also that of an earlier request");
  EXPECT_EQ(batch_.update({}).ok(), true); // no requests are no error
  EXPECT_EQ(batch_.summary().tokens, 0);
}

TEST_F(PagedBatchTest, AFailedStepLeavesPlansCurrent) {
  const Plan plan = batch_.plan(attention_).value();
  lengths_[1] = -5;
  EXPECT_FALSE(batch_.update(requests()));
  EXPECT_FALSE(batch_.grow(table(), lengths_));
  EXPECT_TRUE(plan.isCurrent());
}

TEST_F(PagedBatchTest, EntriesThatChangedUnsaidAreNoticedWhereAskedFor) {
  PagedBatch careful = PagedBatch::make({.pageSize = kPageSize, .checkEntries = true}).value();
  careful.update(requests()).value();
  write(2, {3, 8});
  const auto updated = careful.grow(table(), lengths_);
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().message, "request 2: page 1 of its row was 7 and is 8");
}

TEST_F(PagedBatchTest, PagesThatTheCacheLacksAreNamedOnceTheyAreRead) {
  PagedBatch small = PagedBatch::make({.pageSize = kPageSize, .cachePages = 12}).value();
  lengths_[2] = 48; // its fourth page is 12
  small.update(requests()).value();
  lengths_[2] = 49;
  const auto grown = small.grow(table(), lengths_);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().message, "request 2: page 3 of row 2 is 12, and the cache has 12 pages");
  EXPECT_EQ(PagedBatch::make({.cachePages = -1}).error().message,
            "PagedBatchOptions::cachePages is -1, not between 0 and 2147483648");
}

TEST_F(PagedBatchTest, AttentionsOfOtherPagesAreRefused) {
  PagedBatch other = PagedBatch::make({.pageSize = 32}).value();
  const auto plan = other.plan(attention_);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "the batch has pages of 32 tokens, `host_program` of 16");
  for (const int pageSize : {0, -1, (1 << 20) + 1})
    EXPECT_THAT(PagedBatch::make({.pageSize = pageSize}).error().message,
                HasSubstr("PagedBatchOptions::pageSize is " + std::to_string(pageSize)));
}

/// Chunks of two pages; others have none of its pages, one, one and a half chunks, or all of them.
TEST_F(PagedBatchTest, BitsOfAnInvariantPlanDoNotDependOnWhoSharesPages) {
  constexpr int kChunk = 2 * kPageSize;
  const PlanOptions options{.chunkTokens = kChunk, .invariant = true};
  const std::vector<int> pages{3, 7, 9, 2, 13, 14};
  queryIndptr_ = {0, 3};
  lengths_ = {90}, ids_ = {10};
  write(0, pages);
  const auto batchOf = [&] {
    PagedBatch batch = PagedBatch::make({.pageSize = kPageSize, .invariantChunk = kChunk}).value();
    batch.update(requests()).value();
    return batch;
  };
  PagedBatch batch = batchOf();
  Plan followed = batch.plan(attention_, options).value();
  const Computed alone = compute(followed);
  EXPECT_EQ(alone.lse, compute(Plan::make(attention_, apart(), options).value()).lse); // as a tree of itself
  const auto expectAsAlone = [&](const Plan &plan) {
    Computed together = compute(plan);
    together.out.resize(alone.out.size());
    together.lse.resize(alone.lse.size());
    EXPECT_EQ(together.out, alone.out);
    EXPECT_EQ(together.lse, alone.lse);
  };
  for (const std::vector<int> &shared :
       std::vector<std::vector<int>>{{0}, {1}, {3}, {6}, {6, 4, 1}, {5, 3, 2, 2}}) {
    SCOPED_TRACE(testing::PrintToString(shared));
    lengths_ = {90}, ids_ = {10}, queryIndptr_ = {0, 3};
    for (std::size_t i = 0; i < shared.size(); ++i) {
      const int row = static_cast<int>(i) + 1;
      std::vector<int> own(pages.begin(), pages.begin() + shared[i]);
      while (static_cast<int>(own.size()) < kRow) // of its own
        own.push_back(15 + 4 * row);
      write(row, own);
      lengths_.push_back(83 + row);
      ids_.push_back(100 * ids_.back() + static_cast<std::uint64_t>(shared[i]));
      queryIndptr_.push_back(queryIndptr_.back() + 2);
    }
    expectAsAlone(batchOf().plan(attention_, options).value());
    batch.update(requests()).value(); // and where they come and go
    followed.advance(batch.tree()).value();
    expectAsAlone(followed);
  }
  const SharingSummary summary = batch.summary(); // {5, 3, 2, 2}: two chunks with one, one with three
  EXPECT_EQ(summary.requestTokens - summary.tokens, 2 * kChunk + 3 * kChunk);
}

TEST_F(PagedBatchTest, PlansFollowInTheSameCall) {
  Plan first = batch_.plan(attention_).value();
  Plan second = batch_.plan(attention_, {.partition = Partition::Query}).value();
  Plan *plans[] = {&first, &second};
  for (int &length : lengths_)
    ++length;
  const auto grown = batch_.grow(table(), lengths_, {.plans = plans});
  ASSERT_TRUE(grown) << grown.error().text();
  EXPECT_NE(*grown, Advanced::Nothing);
  expectAsApart(first);
  expectAsApart(second);
  lengths_.pop_back();
  ids_.pop_back();
  if (!queryIndptr_.empty())
    queryIndptr_.pop_back();
  EXPECT_EQ(batch_.update(requests(), {.plans = plans}).value(), Advanced::Remade);
  expectAsApart(first);
  expectAsApart(second);
  EXPECT_EQ(batch_.update(requests(), {.plans = plans}).value(), Advanced::Nothing) << "nothing has changed";
}

TEST_F(PagedBatchTest, AStepThatFailsLeavesPlansAsTheyWere) {
  Plan plan = batch_.plan(attention_).value();
  Plan *plans[] = {&plan};
  const std::vector<int> before = lengths_;
  lengths_[0] = 10000;
  EXPECT_FALSE(batch_.update(requests(), {.plans = plans}));
  EXPECT_TRUE(plan.isCurrent());
  lengths_ = before;
  expectAsApart(plan);
}

TEST_F(PagedBatchTest, AnInvariantPlanIsOfABatchThatSharesWholeChunks) {
  const auto why = [&](const PagedBatch &batch, const PlanOptions &options) {
    const auto plan = batch.plan(attention_, options);
    return plan ? "none" : plan.error().text();
  };
  const std::string unfit = why(batch_, {.invariant = true});
  EXPECT_THAT(unfit, HasSubstr("an invariant plan needs a batch whose requests share only whole chunks"));
  EXPECT_THAT(unfit, HasSubstr("give the batch an invariant chunk of 512"));
  PagedBatch batch = PagedBatch::make({.pageSize = kPageSize, .invariantChunk = 500}).value();
  EXPECT_EQ(why(batch, {.invariant = true}), "none") << "chunks are multiples of 16";
  EXPECT_EQ(why(batch, {.chunkTokens = 128, .invariant = true}), "none");
  EXPECT_EQ(why(batch, {.chunkTokens = 96}), "none");
  const std::string other = why(batch, {.chunkTokens = 96, .invariant = true});
  EXPECT_THAT(other, HasSubstr("the batch's requests share multiples of 512 tokens, but an invariant plan "
                               "needs multiples of its chunks: these have 96"));
  EXPECT_THAT(other, HasSubstr("give the batch an invariant chunk of 96"));
  EXPECT_EQ(PagedBatch::make({.invariantChunk = -1}).error().message,
            "PagedBatchOptions::invariantChunk is -1, not between 0 and 1073741824");
}

} // namespace
} // namespace deft
