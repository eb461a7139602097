// Batches of an engine's page table on GPUs. `libcuda.so.1` is the tests' driver, whose memory is the host's:
// so the engine's table on the GPU is a second one, which only the runs read.
#include "tests/support/DriverCalls.h"
#include "tests/support/FakeCuda.h"

#include <deft/deft.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

namespace deft {
namespace {

constexpr int kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64, kPageSize = 16, kPages = 64, kRow = 8, kRows = 8;

float fromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

class GpuPagedBatchTest : public testing::Test {
protected:
  GpuPagedBatchTest() {
    fake_cuda::setVariant({kQueryHeads, kKvHeads, kHeadDim, kPageSize, true, 0.25f});
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto *values : {&k_, &v_, &q_})
      for (Chunk &chunk : *values)
        for (std::uint16_t &value : chunk.values)
          value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    for (int i = 0; i < 5; ++i)
      begin(40 + 3 * i);
  }

  /// In the first free row: a prompt of two pages that all have, and pages of its own.
  void begin(int tokens) {
    int row = 0;
    while (table_[static_cast<std::size_t>(row * kRow)] >= 0)
      ++row;
    for (int page = 0; page < kRow; ++page)
      table_[static_cast<std::size_t>(row * kRow + page)] = page < 2 ? page : 2 + (row * 6 + page - 2) % 60;
    rows_.push_back(row), lengths_.push_back(tokens), ids_.push_back(++lastId_);
  }
  void end(std::size_t request) {
    std::fill_n(table_.begin() + rows_[request] * kRow, kRow, -1);
    const auto at = static_cast<std::ptrdiff_t>(request);
    rows_.erase(rows_.begin() + at), lengths_.erase(lengths_.begin() + at), ids_.erase(ids_.begin() + at);
  }
  void sendTable() { onGpu_ = table_; }

  PageTable table() const { return {.entries = table_, .rowStride = kRow}; }
  PagedRequests requests() const {
    return {.table = table(), .lengths = lengths_, .rows = rows_, .ids = ids_};
  }
  GpuInputs inputs() { return {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = onGpu_.data()}; }
  GpuOutputs outputs() { return {.out = out_.data(), .lse = lse_.data()}; }

  /// Every row against its request alone, token by token, as the engine's table says.
  void expectRight() {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      for (int head = 0; head < kQueryHeads; ++head) {
        const auto row = static_cast<int>(i) * kQueryHeads + head;
        std::vector<double> sum(kHeadDim);
        double weights = 0;
        for (int t = 0; t < lengths_[i]; ++t) {
          const int page = table_[static_cast<std::size_t>(rows_[i] * kRow + t / kPageSize)];
          const int token = ((page * kPageSize + t % kPageSize) * kKvHeads + head / 2) * kHeadDim;
          double score = 0;
          for (int d = 0; d < kHeadDim; ++d)
            score += double{fromBf16(at(q_, row * kHeadDim + d))} * fromBf16(at(k_, token + d));
          const double weight = std::exp(0.25 * score);
          weights += weight;
          for (int d = 0; d < kHeadDim; ++d)
            sum[static_cast<std::size_t>(d)] += weight * fromBf16(at(v_, token + d));
        }
        ASSERT_NEAR(lse_[static_cast<std::size_t>(row)], std::log(weights), 1e-3) << row;
        for (int d = 0; d < kHeadDim; ++d) {
          const double exact = sum[static_cast<std::size_t>(d)] / weights;
          ASSERT_NEAR(fromBf16(at(out_, row * kHeadDim + d)), exact, 0.01 + 0.01 * std::abs(exact)) << row;
        }
      }
    std::fill(lse_.begin(), lse_.end(), NAN);
  }

  struct alignas(16) Chunk { ///< as memory of a GPU begins
    std::uint16_t values[8];
  };
  static std::uint16_t at(const std::vector<Chunk> &chunks, int element) {
    return chunks[static_cast<std::size_t>(element / 8)].values[element % 8];
  }

  std::vector<Chunk> q_ = std::vector<Chunk>(kRows * kQueryHeads * kHeadDim / 8), out_ = q_;
  std::vector<Chunk> k_ = std::vector<Chunk>(kPages * kPageSize * kKvHeads * kHeadDim / 8), v_ = k_;
  std::vector<float> lse_ = std::vector<float>(kRows * kQueryHeads);
  std::vector<int> table_ = std::vector<int>(kRows * kRow, -1), onGpu_ = table_, rows_, lengths_;
  std::vector<std::uint64_t> ids_;
  std::uint64_t lastId_ = 0;
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  PagedBatch batch_ = PagedBatch::make({.pageSize = kPageSize}).value();
  void *stream_ = nullptr;
};

TEST_F(GpuPagedBatchTest, OneCallIsAStepOfTheHost) {
  batch_.update(requests()).value();
  GpuPlan plan = batch_.plan(attention_).value();
  plan.upload(stream_).value();
  GpuPlan *plans[] = {&plan};
  for (int step = 0; step < 6; ++step) {
    for (int &length : lengths_)
      ++length;
    if (step % 3 == 2) {
      end(0);
      begin(37);
      EXPECT_EQ(batch_.update(requests(), {.gpuPlans = plans, .stream = stream_}).value(), Advanced::Remade);
    } else {
      ASSERT_TRUE(batch_.update(requests(), {.gpuPlans = plans, .stream = stream_}));
    }
    sendTable();
    plan.run(attention_, inputs(), outputs(), stream_).value();
    expectRight();
  }
}

TEST_F(GpuPagedBatchTest, AGraphReadsTheEnginesOwnTable) {
  batch_.update(requests()).value();
  EXPECT_EQ(batch_.summary().tokens, batch_.summary().requestTokens - 4 * 32);
  GpuPlan plan = batch_.plan(attention_).value();
  plan.reserve({.queries = kRows, .items = 200, .runs = 600, .partials = 400}).value();
  sendTable();
  plan.upload(stream_).value();
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  const auto captured = plan.run(attention_, inputs(), outputs(), stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_TRUE(captured) << captured.error().text();
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);

  int inPlace = 0;
  for (int step = 0; step < 12; ++step) {
    for (int &length : lengths_)
      ++length;
    if (step % 4 == 2) { // rows of those that leave are overwritten before the next plan, some by others'
      end(0);
      end(1);
      begin(37);
      batch_.update(requests()).value();
    } else {
      batch_.grow(table(), lengths_).value();
    }
    inPlace += plan.advance(batch_.tree()).value() == Advanced::InPlace;
    sendTable();
    plan.upload(stream_).value();
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    ASSERT_NO_FATAL_FAILURE(expectRight()) << "step " << step;
    EXPECT_TRUE(plan.checkReplays());
  }
  EXPECT_GE(inPlace, 6);
  ++lengths_[0];
  batch_.grow(table(), lengths_).value();
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  EXPECT_FALSE(plan.checkReplays()); // the plan is of the step before, and that is noticed
}

/// Of a request of seven pages and a bit, with others that have none of its pages, half a chunk, one, one and
/// a half, or all of them; planned anew, and by the plan that follows the batch.
TEST_F(GpuPagedBatchTest, BitsOfAnInvariantPlanDoNotDependOnWhoSharesPages) {
  constexpr int kChunk = 2 * kPageSize, kTokens = 7 * kPageSize + 5;
  const GpuAttention attention =
      GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value(), {.invariant = true}).value();
  const GpuPlanOptions options{.plan = {.chunkTokens = kChunk, .invariant = true}};
  PagedBatch batch = PagedBatch::make({.pageSize = kPageSize, .invariantChunk = kChunk}).value();
  std::optional<GpuPlan> followed;
  std::vector<Chunk> firstOut;
  std::vector<float> firstLse;
  const auto expectFirst = [&](GpuPlan &plan) {
    plan.upload(stream_).value();
    plan.run(attention, inputs(), outputs(), stream_).value();
    const std::vector<float> lse(lse_.begin(), lse_.begin() + kQueryHeads);
    ASSERT_NO_FATAL_FAILURE(expectRight());
    constexpr int kElements = kQueryHeads * kHeadDim;
    if (firstLse.empty())
      firstOut = out_, firstLse = lse;
    EXPECT_EQ(lse, firstLse);
    for (int element = 0; element < kElements; ++element)
      ASSERT_EQ(at(out_, element), at(firstOut, element)) << element;
  };
  for (const std::vector<int> &shared :
       std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {3}, {8}, {8, 3, 5, 1, 2}, {7}}) {
    SCOPED_TRACE(testing::PrintToString(shared));
    table_.assign(table_.size(), -1);
    rows_ = {0}, lengths_ = {kTokens}, ids_ = {1};
    for (int page = 0; page < kRow; ++page)
      table_[static_cast<std::size_t>(page)] = page;
    for (std::size_t i = 0; i < shared.size(); ++i) {
      const int row = static_cast<int>(i) + 1;
      for (int page = 0; page < kRow; ++page)
        table_[static_cast<std::size_t>(row * kRow + page)] = page < shared[i] ? page : row * kRow + page;
      rows_.push_back(row), lengths_.push_back(kTokens + row), ids_.push_back(++lastId_);
    }
    batch.update(requests()).value();
    sendTable();
    GpuPlan fresh = batch.plan(attention, options).value();
    ASSERT_NO_FATAL_FAILURE(expectFirst(fresh));
    if (followed)
      followed->advance(batch.tree()).value();
    else
      followed = std::move(fresh);
    ASSERT_NO_FATAL_FAILURE(expectFirst(*followed));
  }
}

} // namespace
} // namespace deft
