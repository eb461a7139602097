#pragma once

#include "tests/support/DriverCalls.h"
#include "tests/support/FakeCuda.h"

#include <deft/deft.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

/// A program with a cache, sequences and an attention on the GPU of the tests' driver, whose memory is the
/// host's.
namespace deft {

constexpr int kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64, kPageSize = 16, kPages = 64, kMostQueries = 32;

inline float fromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
inline std::uint16_t toBf16(float value) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000u) >> 16);
}

/// 16-byte aligned, as memory of a GPU is.
class Memory {
public:
  explicit Memory(std::size_t count) : values_(count + 8) {}
  std::uint16_t *data() {
    const auto address = reinterpret_cast<std::uintptr_t>(values_.data());
    return values_.data() + (16 - address % 16) % 16 / 2;
  }

private:
  std::vector<std::uint16_t> values_;
};

class GpuTest : public testing::Test {
protected:
  GpuTest()
      : q_(kMostQueries * kQueryHeads * kHeadDim), k_(kPages * kPageSize * kKvHeads * kHeadDim),
        v_(kPages * kPageSize * kKvHeads * kHeadDim), out_(kMostQueries * kQueryHeads * kHeadDim),
        lse_(kMostQueries * kQueryHeads) {
    fake_cuda::setVariant({kQueryHeads, kKvHeads, kHeadDim, kPageSize, true, 0.25f});
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Memory *memory : {&k_, &v_})
      for (int i = 0; i < kPages * kPageSize * kKvHeads * kHeadDim; ++i)
        memory->data()[i] = toBf16(normal(random));
    for (int i = 0; i < kMostQueries * kQueryHeads * kHeadDim; ++i)
      q_.data()[i] = toBf16(normal(random));
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    const int prompt = sequences_.addRoot(70).value();
    for (int i = 0; i < 5; ++i)
      leaves_.push_back(sequences_.addChild(prompt, 3 + 7 * i).value());
    std::vector<Query> queries;
    for (const int leaf : leaves_)
      queries.push_back({leaf});
    sequences_.setQueries(queries).value();
  }

  GpuInputs inputs() { return {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = table_.data()}; }
  GpuOutputs outputs() { return {.out = out_.data(), .lse = lse_.data()}; }
  const Tree &tree() const { return sequences_.tree(); }

  Result<void> uploadAndRun(GpuPlan &plan) {
    if (auto uploaded = table_.upload(sequences_, stream_); !uploaded)
      return uploaded;
    if (auto uploaded = plan.upload(stream_); !uploaded)
      return uploaded;
    return plan.run(attention_, inputs(), outputs(), stream_);
  }

  /// A run of the plan as a graph.
  void capture(GpuPlan &plan, void *&executable) {
    void *graph = nullptr;
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
    const auto captured = plan.run(attention_, inputs(), outputs(), stream_);
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
    ASSERT_TRUE(captured) << captured.error().text();
    ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  }

  /// Every row against its sequence, token by token, and so many more behind it in its page; forgets the
  /// outputs.
  bool isRight(const std::vector<int> &more = std::vector<int>(kMostQueries)) {
    bool allRight = true;
    for (int query = 0; query < tree().queryCount(); ++query)
      for (int head = 0; head < kQueryHeads; ++head)
        allRight = isRowRight(query, head, more[static_cast<std::size_t>(query)]) && allRight;
    std::fill_n(out_.data(), kMostQueries * kQueryHeads * kHeadDim, std::uint16_t{0xffff});
    return allRight;
  }

  std::int64_t lastSlot(int query) {
    const int node = tree().query(query).node;
    return sequences_.slot(node, tree().node(node).tokens - 1);
  }

  bool isRowRight(int query, int head, int more) {
    std::vector<std::int64_t> slots;
    for (int i = 1; i <= more; ++i)
      slots.push_back(lastSlot(query) + i);
    for (int node = tree().query(query).node; node >= 0; node = tree().node(node).parent)
      for (int i = 0; i < tree().node(node).tokens; ++i)
        slots.push_back(sequences_.slot(node, i));
    const auto *q = q_.data() + (query * kQueryHeads + head) * kHeadDim;
    const auto at = [&](std::int64_t slot) {
      return (slot * kKvHeads + head / (kQueryHeads / kKvHeads)) * kHeadDim;
    };
    std::vector<double> sum(kHeadDim);
    double weights = 0;
    for (const std::int64_t slot : slots) {
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += static_cast<double>(fromBf16(q[d])) * fromBf16(k_.data()[at(slot) + d]);
      const double weight = std::exp(0.25 * score);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sum[static_cast<std::size_t>(d)] += weight * fromBf16(v_.data()[at(slot) + d]);
    }
    const int row = query * kQueryHeads + head;
    if (!(std::abs(lse_[static_cast<std::size_t>(row)] - std::log(weights)) < 1e-3))
      return false;
    for (int d = 0; d < kHeadDim; ++d) {
      const double exact = sum[static_cast<std::size_t>(d)] / weights;
      if (!(std::abs(fromBf16(out_.data()[row * kHeadDim + d]) - exact) < 0.01 + 0.01 * std::abs(exact)))
        return false;
    }
    return true;
  }

  Memory q_, k_, v_, out_;
  std::vector<float> lse_;
  SequenceTree sequences_ = SequenceTree::make({kPageSize, kPages}).value();
  std::vector<int> leaves_;
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  GpuPageTable table_ = GpuPageTable::make(gpu_, 4 * kPages).value();
  void *stream_ = nullptr;
};

} // namespace deft
