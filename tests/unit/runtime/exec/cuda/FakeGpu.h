#pragma once

#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cuda/CudaPlan.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/FakeCuda.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <map>
#include <span>

namespace deft::exec {

/// A GPU of the fake driver with the kernels of one small variant, whose results the oracle can judge.
class FakeGpu {
public:
  /// With kernels for plans that deal tokens where `deals`; with `query = 2 * x`, which the fake driver's
  /// kernels of such a hook compute, where `hasQuery`.
  explicit FakeGpu(int ordinal = 0, int phases = 1, bool deals = false, bool hasQuery = false) {
    auto driver = device::Driver::load(DEFT_FAKE_CUDA);
    EXPECT_TRUE(driver.ok());
    device = *device::Device::open(*driver, ordinal);
    variant.name = "small";
    variant.queryHeads = 6;
    variant.kvHeads = 2;
    variant.tensors = spec::Tensors::alike(16);
    variant.withLse = true;
    variant.scale = 0.25;
    fake_cuda::setVariant({6, 2, 16, variant.cache.pageSize, true, 0.25f});
    set.arch = "sm_90a";
    set.config.chunkTokens = 32;
    if (phases == 2)
      set.config.phases.push_back({.name = "wide", .rowsAbove = 16, .tileQ = 32});
    set.config.phases.push_back({.name = "narrow", .tileQ = 16});
    if (deals) {
      set.config.order = config::Order::Mixed;
      set.config.phases.back().family = config::Family::Sm90;
    }
    for (const config::PhaseConfig &phase : set.config.phases)
      set.attend.push_back(
          {.entry = "deft_small_" + phase.name, .cubin = "fake", .threads = 128, .resources = {}});
    set.merge = {.entry = "deft_small_merge", .cubin = "fake", .threads = 128, .resources = {}};
    if (hasQuery) {
      test::VariantBuilder build;
      build.variant = variant;
      build.variant.query = build.op(spec::ExprOp::Mul, spec::ScalarType::F32,
                                     {build.constant(2), build.read(spec::Builtin::X)});
      variant = build.variant;
      set.query = {.entry = "deft_small_queries", .cubin = "fake", .threads = 128, .resources = {}};
    }
    kernels = *CudaKernels::load(device, variant, set);
    params = *CudaParams::upload(device, variant, {});
    (void)fake_cuda::takeCalls();
  }

  /// From now on K has this dim, and V keeps its own.
  void widenKeys(int keyDim) {
    variant.tensors.q.dim = variant.tensors.k.dim = keyDim;
    fake_cuda::Variant of{6, 2, 16, variant.cache.pageSize, true, 0.25f};
    of.otherKeyDim = keyDim;
    fake_cuda::setVariant(of);
    kernels = *CudaKernels::load(device, variant, set);
    params = *CudaParams::upload(device, variant, {});
  }

  plan::Plan makePlan(const tree::KvTree &tree, config::Config config = {}) const {
    if (config.phases.empty())
      config = kernels->config();
    auto plan = plan::makePlan(tree, plan::VariantFacts::of(variant), config, 8);
    EXPECT_TRUE(plan.ok());
    return *plan;
  }

  std::unique_ptr<CudaPlan> makeDevicePlan(const CudaPlanOptions &options) const {
    auto plan = CudaPlan::create(kernels, options);
    EXPECT_TRUE(plan.ok());
    return std::move(*plan);
  }

  std::shared_ptr<device::Device> device;
  spec::Variant variant;
  package::KernelSet set;
  std::shared_ptr<const CudaKernels> kernels;
  std::unique_ptr<const CudaParams> params;
};

/// A step's tree, its inputs where the fake GPU reads them, and the oracle's opinion of what it wrote.
class FakeStep {
public:
  FakeStep(const FakeGpu &gpu, tree::KvTree someTree, std::uint64_t seed)
      : tree(std::move(someTree)), gpu_(gpu) {
    const auto placement = tree::placeInCache(
        tree,
        {.pageSize = gpu.variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = seed});
    EXPECT_TRUE(placement.ok());
    inputs_ = makeRandomInputs(gpu.variant, tree, *placement, {}, seed);
    const std::size_t rows = static_cast<std::size_t>(inputs_.queryCount) * gpu.variant.queryHeads;
    outputs_.out.assign(rows * gpu.variant.tensors.out.dim + 8, 0xffff); // aligned below
    outputs_.lse.assign(rows, -1);
    q_ = align(inputs_.q);
    k_ = align(inputs_.k);
    v_ = align(inputs_.v);
  }

  CudaPointers pointers() {
    CudaPointers pointers;
    pointers.q = q_.data() + offset(q_);
    pointers.k = k_.data() + offset(k_);
    pointers.v = v_.data() + offset(v_);
    pointers.pageTable = inputs_.pageTable.data();
    pointers.pages = static_cast<int>(inputs_.pageTable.size());
    pointers.cache = inputs_.cache;
    pointers.out = outputs_.out.data() + offset(outputs_.out);
    pointers.lse = outputs_.lse.data();
    pointers.params = gpu_.params.get();
    return pointers;
  }

  /// Of what stands in the outputs; they are forgotten then.
  bool isRight() {
    Outputs outputs;
    const std::size_t begin = offset(outputs_.out);
    outputs.out.assign(outputs_.out.begin() + static_cast<std::ptrdiff_t>(begin),
                       outputs_.out.end() - static_cast<std::ptrdiff_t>(8 - begin));
    outputs.lse = outputs_.lse;
    const auto report = reference::check(gpu_.variant, tree, inputs_, outputs);
    std::fill(outputs_.out.begin(), outputs_.out.end(), std::uint16_t{0xffff});
    std::fill(outputs_.lse.begin(), outputs_.lse.end(), -1.f);
    return report.passed();
  }

  tree::KvTree tree;

private:
  using Halves = std::vector<std::uint16_t>;
  static std::size_t offset(const Halves &values) {
    return (16 - reinterpret_cast<std::uintptr_t>(values.data()) % 16) % 16 / 2;
  }
  /// A copy of which element offset() on begins at a multiple of 16 bytes.
  static Halves align(std::span<const std::uint16_t> values) {
    Halves aligned(values.size() + 8);
    std::copy(values.begin(), values.end(), aligned.begin() + static_cast<std::ptrdiff_t>(offset(aligned)));
    return aligned;
  }

  const FakeGpu &gpu_;
  Inputs inputs_;
  Outputs outputs_;
  Halves q_, k_, v_;
};

/// How often each call was made since the last time.
inline std::map<std::string, int> countCalls() {
  std::map<std::string, int> counts;
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    ++counts[call.name];
  return counts;
}

/// A stream of the program's own.
inline cu::Stream makeStream(const FakeGpu &gpu) {
  cu::Stream stream = nullptr;
  EXPECT_EQ(gpu.device->api().streamCreate(&stream, cu::kStreamNonBlocking), cu::kSuccess);
  return stream;
}

/// What `enqueue` puts on the stream, as a graph.
template <typename Enqueue>
cu::GraphExec capture(const FakeGpu &gpu, cu::Stream stream, const Enqueue &enqueue) {
  const cu::Api &api = gpu.device->api();
  cu::Graph graph = nullptr;
  cu::GraphExec executable = nullptr;
  EXPECT_EQ(api.streamBeginCapture(stream, cu::kCaptureThreadLocal), cu::kSuccess);
  const auto enqueued = enqueue();
  EXPECT_TRUE(enqueued.ok()) << (enqueued.ok() ? "" : enqueued.error().message);
  EXPECT_EQ(api.streamEndCapture(stream, &graph), cu::kSuccess);
  EXPECT_EQ(api.graphInstantiate(&executable, graph, 0), cu::kSuccess);
  return executable;
}

} // namespace deft::exec
