// Batches under attentions that the compiler makes.
#include <deft/deft.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace deft {
namespace {

TEST(PagedBatchSpecsTest, LevelsOfTheForestAreNoDepths) {
  const Attention attention = compileSpec(R"(attention deep {
    query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = paged(page_size = 16, order = nhd);
    score = s - depth; })")
                                  .value();
  const auto plan = PagedBatch::make({.pageSize = 16}).value().plan(attention);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "`deep` reads `depth`, which in a batch depends on the sharing of pages");
}

/// New tokens of a request are on each other's path; who shares them has no say in what they see.
TEST(PagedBatchSpecsTest, NewTokensSeeEachOtherUnderPath) {
  const Attention attention = compileSpec(R"(attention both_ways {
    query_heads = 2; kv_heads = 1; head_dim = 16; kv_cache = paged(page_size = 16, order = nhd);
    mask = path; output = bf16 with lse; })")
                                  .value();
  EXPECT_TRUE(attention.seesPath());
  const std::vector<int> lengths{40, 60}, indptr{0, 8, 13};
  std::vector<int> entries{0, 1, 2, 3, 0, 1, 4, 5};
  PagedBatch batch = PagedBatch::make({.pageSize = 16}).value();
  const auto update = [&] {
    batch.update({.table = {.entries = entries, .rowStride = 4}, .lengths = lengths, .queryIndptr = indptr})
        .value();
  };
  update();
  EXPECT_LT(batch.summary().tokens, batch.summary().requestTokens);
  const std::vector<std::uint16_t> q(13 * 2 * 16), k(6 * 16 * 16), v(6 * 16 * 16, 0x3f80);
  std::vector<std::uint16_t> out(q.size());
  std::vector<float> lse(13 * 2);
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  Plan plan = batch.plan(attention).value();
  runtime
      .run(attention, plan, {.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = entries},
           {.out = out.data(), .lse = lse.data()})
      .value();
  for (std::size_t i = 0; i < lse.size(); ++i)
    EXPECT_NEAR(lse[i], std::log(static_cast<float>(i < 16 ? 40 : 60)), 1e-4F) << i;

  // The first request's last tokens but 4 are now in a page that the other one has, too.
  entries = {0, 1, 4, 3, 0, 1, 4, 5};
  PagedBatch shared = PagedBatch::make({.pageSize = 16}).value();
  const std::vector<int> longer{52, 64};
  shared.update({.table = {.entries = entries, .rowStride = 4}, .lengths = longer, .queryIndptr = indptr})
      .value();
  const auto refused = shared.plan(attention);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("others share pages with new tokens of request 0"),
            std::string::npos)
      << refused.error().message;
  // A batch that knows of the mask refuses the step, and its plan stays that of the one before.
  PagedBatch careful = PagedBatch::make({.pageSize = 16, .seesPath = true}).value();
  const std::vector<int> apart{0, 1, 2, 3, 0, 1, 4, 5};
  careful.update({.table = {.entries = apart, .rowStride = 4}, .lengths = lengths, .queryIndptr = indptr})
      .value();
  Plan kept = careful.plan(attention).value();
  const auto unchanged = careful.update(
      {.table = {.entries = entries, .rowStride = 4}, .lengths = longer, .queryIndptr = indptr});
  ASSERT_FALSE(unchanged);
  EXPECT_EQ(unchanged.error().hint, "give new tokens that see each other their own pages");
  EXPECT_TRUE(kept.isCurrent());
  EXPECT_EQ(kept.advance(careful.tree()).value(), Advanced::Nothing);
  Tree copy = shared.tree();
  EXPECT_FALSE(Plan::make(attention, copy)) << "it is of the same requests";
  copy.clearQueries();
  EXPECT_TRUE(Plan::make(attention, copy)) << "and by now a tree like any other";
  const std::vector<int> drafts{2, 0};
  shared.update({.table = {.entries = entries, .rowStride = 4}, .lengths = lengths, .drafts = drafts})
      .value();
  EXPECT_NE(shared.plan(attention).error().message.find("is bound by `path`, and a plan with drafts"),
            std::string::npos);
}

/// A window begins inside of what is shared, and positions are those of each request.
TEST(PagedBatchSpecsTest, MasksAndScoresSeeEachRequestByItself) {
  const Attention attention = compileSpec(R"(import "library.deft";
  attention windowed {
    query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = paged(page_size = 16, order = nhd);
    mask = tree && sliding_window(40); score = s - 0.01 * (q_pos - kv_pos); })")
                                  .value();
  constexpr int kRow = 8, kRequests = 6, kPages = 64;
  std::vector<int> entries(kRequests * kRow), lengths;
  for (int i = 0; i < kRequests * kRow; ++i) // three pages of a prompt, five of each request's own
    entries[static_cast<std::size_t>(i)] = i % kRow < 3 ? i % kRow : i;
  Tree apart;
  for (int i = 0; i < kRequests; ++i) {
    lengths.push_back(45 + 7 * i);
    apart.addQuery(apart.addRoot(lengths.back(), i * kRow * 16).value()).value();
  }
  PagedBatch batch = PagedBatch::make({.pageSize = 16}).value();
  batch.update({.table = {.entries = entries, .rowStride = kRow}, .lengths = lengths}).value();
  EXPECT_LT(batch.summary().tokens, batch.summary().requestTokens);

  std::mt19937 random(2);
  const auto fill = [&](std::vector<std::uint16_t> &values) { // bf16 of 1 to 2, either sign
    for (std::uint16_t &value : values)
      value = static_cast<std::uint16_t>(0x3f80 | (random() & 0x807f));
  };
  std::vector<std::uint16_t> q(kRequests * 4 * 64), k(kPages * 16 * 2 * 64), v(k.size());
  std::vector<std::uint16_t> out(q.size()), other(q.size());
  fill(q), fill(k), fill(v);
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  const Inputs inputs{.q = q.data(), .k = k.data(), .v = v.data(), .pageTable = entries};
  runtime.run(attention, batch.plan(attention).value(), inputs, {.out = out.data()}).value();
  runtime.run(attention, Plan::make(attention, apart).value(), inputs, {.out = other.data()}).value();
  const auto value = [](std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); };
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_NEAR(value(out[i]), value(other[i]), 0x1p-6) << i; // of at most 2, in bf16
}

} // namespace
} // namespace deft
