// Requests with drafts on GPUs. `libcuda.so.1` is the tests' driver, whose memory is the host's.
#include "tests/support/DraftTrees.h"
#include "tests/support/DriverCalls.h"
#include "tests/support/FakeCuda.h"

#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace deft {
namespace {

using testing::HasSubstr;

constexpr int kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64, kPageSize = 16, kRow = 12, kRows = 4;
constexpr int kDrafts = 40; ///< rows of a request in the mask

std::size_t index(int i) { return static_cast<std::size_t>(i); }
float wide(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

/// Requests with a prompt of two pages, whose lengths and drafts' trees only the "GPU" has: graphs are
/// replayed as these change.
class GpuDraftsTest : public testing::Test {
protected:
  GpuDraftsTest() {
    fake_cuda::setVariant({kQueryHeads, kKvHeads, kHeadDim, kPageSize, true, 0.25f});
    std::normal_distribution<float> normal;
    for (auto *values : {&k_, &v_, &q_})
      for (Chunk &chunk : *values)
        for (std::uint16_t &value : chunk.values)
          value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random_)) >> 16);
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    for (int row = 0; row < kRows; ++row)
      for (int page = 0; page < kRow; ++page)
        table_.push_back(page < 2 ? page : 2 + row * (kRow - 2) + page - 2);
    lengths_ = {40, 33, 60, 47};
    drafts_ = {40, 1, 17, 0};
    trees_.resize(kRows);
    bits_.resize(index(kRows * kDrafts * 2));
    onGpu_ = lengths_;
    drawTrees();
  }

  /// Other trees of as many drafts.
  void drawTrees() {
    for (int r = 0; r < kRows; ++r) {
      test::DraftParents &tree = trees_[index(r)];
      if (drafts_[index(r)] > 0)
        tree = test::draftTreeOf(drafts_[index(r)], random_);
      const auto mask = test::maskOf(tree, kDrafts, random_);
      std::copy(mask.begin(), mask.end(), bits_.begin() + r * kDrafts * 2);
    }
  }

  PagedRequests requests() const {
    return {.table = {.entries = table_, .rowStride = kRow}, .lengths = lengths_, .drafts = drafts_};
  }
  DraftMask mask() const {
    return {.bits = bits_.data(), .drafts = kDrafts, .requests = kRows, .lengths = onGpu_.data()};
  }
  GpuInputs inputs() { return {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = table_.data()}; }
  GpuOutputs outputs() { return {.out = out_.data(), .lse = lse_.data()}; }

  /// Each draft alone, token by token; forgets the outputs.
  void expectRight() {
    int query = 0;
    for (int r = 0; r < kRows; ++r)
      for (int draft = 0; draft < drafts_[index(r)]; ++draft, ++query) {
        std::vector<int> positions; // in the row
        for (int t = 0; t < onGpu_[index(r)]; ++t)
          positions.push_back(t);
        for (int other = 0; other < drafts_[index(r)]; ++other)
          if (test::doesSee(trees_[index(r)], draft, other))
            positions.push_back(onGpu_[index(r)] + other);
        for (int head = 0; head < kQueryHeads; ++head)
          ASSERT_TRUE(isRowRight(r, query, head, positions)) << "request " << r << ", draft " << draft;
      }
    std::fill(lse_.begin(), lse_.end(), NAN);
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
        score += double{wide(at(q_, row * kHeadDim + d))} * wide(at(k_, token + d));
      const double weight = std::exp(0.25 * score);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sum[index(d)] += weight * wide(at(v_, token + d));
    }
    bool isRight = std::abs(lse_[index(row)] - std::log(weights)) < 1e-3;
    for (int d = 0; d < kHeadDim; ++d) {
      const double exact = sum[index(d)] / weights;
      isRight =
          isRight && std::abs(wide(at(out_, row * kHeadDim + d)) - exact) < 0.01 + 0.01 * std::abs(exact);
    }
    return isRight;
  }

  struct alignas(16) Chunk { ///< as memory of a GPU begins
    std::uint16_t values[8];
  };
  static std::uint16_t at(const std::vector<Chunk> &chunks, int element) {
    return chunks[index(element / 8)].values[element % 8];
  }

  std::mt19937 random_{5};
  std::vector<Chunk> q_ = std::vector<Chunk>(index(kRows * kDrafts * kQueryHeads * kHeadDim / 8)), out_ = q_;
  std::vector<Chunk> k_ = std::vector<Chunk>(index(kRows * kRow * kPageSize * kKvHeads * kHeadDim / 8)),
                     v_ = k_;
  std::vector<float> lse_ = std::vector<float>(index(kRows * kDrafts * kQueryHeads));
  std::vector<int> table_, lengths_, drafts_, onGpu_;
  std::vector<test::DraftParents> trees_;
  std::vector<std::uint32_t> bits_;
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  PagedBatch batch_ = PagedBatch::make({.pageSize = kPageSize}).value();
  void *stream_ = nullptr;
};

TEST_F(GpuDraftsTest, AGraphFollowsTreesAndLengthsThatOnlyTheDeviceHas) {
  batch_.update(requests()).value();
  auto made = batch_.plan(attention_, {.followsLengths = true});
  if (!made && made.error().code == ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made) << made.error().text();
  GpuPlan &plan = *made;
  plan.reserve({.queries = 100, .items = 60, .runs = 2000, .partials = 800}).value();
  plan.upload(stream_).value();
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  ASSERT_TRUE(plan.draft(mask(), stream_));
  ASSERT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  for (int step = 0; step < 60; ++step) {
    drawTrees();
    for (int r = 0; r < kRows; ++r)
      onGpu_[index(r)] = lengths_[index(r)] + static_cast<int>(random_() % 17);
    if (step % 6 == 5) { // the host hears of the lengths, or how many drafts there are now
      for (int r = 0; r < kRows; ++r)
        lengths_[index(r)] = std::min(onGpu_[index(r)], 100);
      onGpu_ = lengths_;
      if (step % 12 == 5) {
        drafts_[1] = 1 + static_cast<int>(random_() % 20);
        drafts_[3] = static_cast<int>(random_() % 9);
        drawTrees();
        batch_.update(requests()).value();
      } else {
        batch_.grow(requests().table, lengths_).value();
      }
      plan.advance(batch_.tree()).value();
      plan.upload(stream_).value();
    }
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    const auto checked = plan.checkReplays();
    ASSERT_TRUE(checked) << checked.error().text();
    ASSERT_NO_FATAL_FAILURE(expectRight()) << "step " << step;
  }

  onGpu_[2] = lengths_[2] + 17;
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  auto noticed = plan.checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, HasSubstr("request 2 had"));
  onGpu_[2] = lengths_[2];
  bits_[index((2 * kDrafts + 4) * 2)] &= ~16u;
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  noticed = plan.checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, HasSubstr("bits[2]["));
}

// Before any of them has a draft.
TEST_F(GpuDraftsTest, RoomThatWasReservedForRequestsIsForTheirDraftsToo) {
  constexpr int kMany = 40, kPages = 2;
  std::vector<int> table(index(kMany * kPages));
  std::iota(table.begin(), table.end(), 0);
  const std::vector<int> lengths(index(kMany), kPageSize + 3);
  const auto update = [&](std::span<const int> drafts) {
    batch_.update({.table = {.entries = table, .rowStride = kPages}, .lengths = lengths, .drafts = drafts})
        .value();
  };
  update({});
  GpuPlan plan = batch_.plan(attention_).value();
  plan.reserve(roomFor(attention_, kMany, kMany, kMany * kPages * kPageSize).value().room).value();
  std::vector<int> drafts(index(kMany), 0);
  drafts[0] = 1;
  update(drafts);
  if (const auto first = plan.advance(batch_.tree()); !first && first.error().code == ErrorCode::Environment)
    GTEST_SKIP() << first.error().message;
  else
    ASSERT_TRUE(first) << first.error().text();
  (void)fake_cuda::takeCalls();
  std::fill(drafts.begin(), drafts.end(), 1);
  update(drafts);
  plan.advance(batch_.tree()).value();
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    EXPECT_THAT(call.name, testing::Not(HasSubstr("Alloc"))) << "there was room";
}

TEST_F(GpuDraftsTest, ARunWaitsForTheMask) {
  batch_.update(requests()).value();
  auto made = batch_.plan(attention_);
  if (!made && made.error().code == ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made) << made.error().text();
  GpuPlan &plan = *made;
  plan.upload(stream_).value();
  const auto messageOf = [](const auto &result) { return result ? "none" : result.error().message; };
  EXPECT_THAT(messageOf(plan.run(attention_, inputs(), outputs(), stream_)),
              HasSubstr("does not know yet which drafts see which"));
  EXPECT_THAT(messageOf(plan.draft(mask(), stream_)), HasSubstr("does not follow lengths"));
  DraftMask planned = mask();
  planned.lengths = nullptr;
  EXPECT_TRUE(plan.draft(planned, stream_));
  EXPECT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
  expectRight();
  EXPECT_THAT(messageOf(plan.follow(onGpu_.data(), stream_)), HasSubstr("lengths only on the host"));
}

} // namespace
} // namespace deft
