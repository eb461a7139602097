#pragma once

#include "runtime/exec/cuda/PeerMerge.h"
#include "runtime/peers/GpuExchange.h"
#include "tests/support/FakeCuda.h"
#include "tests/support/FakeNccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

namespace deft::peers {

using Exchange = support::Result<std::unique_ptr<GpuExchange>>;

/// Ranks as threads, on one GPU of the tests' driver, with results that all of them know.
class GpuRanks : public testing::Test {
protected:
  static constexpr int kQueries = 3, kHeads = 4, kDim = 16;

  void SetUp() override {
    const auto kernel = exec::PeerMerge::create(device_, exec::StateType::F32);
    if (!kernel && kernel.error().code == support::ErrorCode::Environment)
      GTEST_SKIP() << kernel.error().message;
  }
  ~GpuRanks() override {
    fake_nccl::setAsyncError(0);
    // What was aborted ends in a thread of its own.
    for (int turn = 0; turn < 5000 && fake_nccl::openGroups() > 0; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(fake_nccl::openGroups(), 0);
  }

  GpuGroup groupOf(int count, int rank, double patience = 20) const {
    return {.count = count,
            .rank = rank,
            .type = exec::StateType::F32,
            .queries = kQueries,
            .heads = kHeads,
            .dim = kDim,
            .headBegin = 0,
            .headCount = kHeads,
            .timeoutSeconds = patience,
            .version = 1};
  }
  /// That no other test has.
  static std::string newName() {
    static int names = 0;
    return "gpu_ranks." + std::to_string(getpid()) + "." + std::to_string(++names);
  }

  struct Results {
    std::vector<float> out, lse;
    bool operator==(const Results &) const = default;
  };
  static Results resultsOf(int rank, int run = 1) {
    std::mt19937 random(static_cast<unsigned>(100 * run + rank));
    std::normal_distribution<float> normal;
    Results made{std::vector<float>(kQueries * kHeads * kDim), std::vector<float>(kQueries * kHeads)};
    for (std::vector<float> *const values : {&made.out, &made.lse})
      for (float &value : *values)
        value = normal(random);
    return made;
  }
  static Results roomFor(int heads) {
    return {std::vector<float>(static_cast<std::size_t>(kQueries * heads * kDim), -7),
            std::vector<float>(static_cast<std::size_t>(kQueries * heads), -7)};
  }
  static GpuMerge mergeOf(const Results &own, Results &to, int begin, int count) {
    return {.own = own.out.data(),
            .ownLse = own.lse.data(),
            .out = to.out.data(),
            .lse = to.lse.data(),
            .queries = kQueries,
            .headBegin = begin,
            .headCount = count};
  }
  /// What all ranks together have for some heads, with one bit more or less nowhere.
  static Results mergedOf(int count, int begin, int heads, int run = 1) {
    std::vector<Results> all;
    exec::PartsOfRows parts;
    for (int rank = 0; rank < count; ++rank)
      all.push_back(resultsOf(rank, run));
    for (const Results &one : all) {
      parts.outs.push_back(one.out.data());
      parts.lses.push_back(one.lse.data());
    }
    parts.queries = kQueries;
    parts.heads = kHeads;
    parts.dim = kDim;
    parts.headBegin = begin;
    parts.headCount = heads;
    Results merged = roomFor(heads);
    exec::mergeHeads(parts, exec::StateType::F32, merged.out.data(), merged.lse.data());
    return merged;
  }

  /// A thread for each rank.
  static void run(int count, const std::function<void(int)> &work) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < count; ++rank)
      ranks.emplace_back([&, rank] { work(rank); });
    for (std::thread &rank : ranks)
      rank.join();
  }

  device::cu::Stream newStream() const {
    device::cu::Stream stream = nullptr;
    EXPECT_EQ(device_->api().streamCreate(&stream, device::cu::kStreamNonBlocking), device::cu::kSuccess);
    return stream;
  }
  /// What is put on the stream, as a graph.
  template <typename Enqueue>
  device::cu::GraphExec capture(device::cu::Stream stream, Enqueue enqueue) const {
    const device::cu::Api &api = device_->api();
    device::cu::Graph graph = nullptr;
    device::cu::GraphExec executable = nullptr;
    EXPECT_EQ(api.streamBeginCapture(stream, device::cu::kCaptureThreadLocal), device::cu::kSuccess);
    const auto enqueued = enqueue();
    EXPECT_TRUE(enqueued) << (enqueued ? "" : enqueued.error().message);
    EXPECT_EQ(api.streamEndCapture(stream, &graph), device::cu::kSuccess);
    EXPECT_EQ(api.graphInstantiate(&executable, graph, 0), device::cu::kSuccess);
    EXPECT_EQ(api.graphDestroy(graph), device::cu::kSuccess);
    return executable;
  }
  void destroy(device::cu::GraphExec graph) const {
    EXPECT_EQ(device_->api().graphExecDestroy(graph), device::cu::kSuccess);
  }

  std::shared_ptr<device::Device> device_ =
      device::Device::open(device::Driver::load(DEFT_FAKE_CUDA).value()).value();
};

} // namespace deft::peers
