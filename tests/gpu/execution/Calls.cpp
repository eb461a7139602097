#include "runtime/device/Timer.h"
#include "runtime/exec/Half.h"
#include "tests/gpu/execution/Checks.h"
#include "tests/gpu/execution/FewShot.h"

#include <deft/merge_states.hpp>

#include <cmath>
#include <limits>
#include <random>

namespace deft::gpu_test {

using nlohmann::json;

namespace {

constexpr StateType kStateTypes[] = {StateType::F32, StateType::F16, StateType::BF16};

/// Some partial attentions of the same rows, of which some have seen nothing; the host's memory and the
/// GPU's.
struct States {
  States(const Subject &subject, StateType type, int count, const StateShape &shape, std::mt19937 &random)
      : shape(shape) {
    const auto elements = static_cast<std::size_t>(shape.rows * shape.dim);
    const auto rows = static_cast<std::size_t>(shape.rows);
    std::normal_distribution<float> normal;
    for (int i = 0; i < count; ++i) {
      auto &one = parts.emplace_back(subject.device);
      one.lse.resize(rows);
      for (float &lse : one.lse)
        lse = random() % 5 == 0 ? -std::numeric_limits<float>::infinity() : 4 * normal(random);
      one.out.resize(elements * (type == StateType::F32 ? 4 : 2));
      for (std::size_t e = 0; e < elements; ++e)
        store(one.out, e, type, normal(random));
      isReady =
          isReady && one.onDevice.upload(one.out, "a state").ok() && one.lses.upload(one.lse, "its lse").ok();
    }
  }

  static void store(std::vector<std::byte> &to, std::size_t element, StateType type, float value) {
    if (type == StateType::F32) {
      std::memcpy(to.data() + 4 * element, &value, 4);
      return;
    }
    const std::uint16_t bits =
        exec::fromFloat(value, type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16);
    std::memcpy(to.data() + 2 * element, &bits, 2);
  }

  struct Part {
    explicit Part(const std::shared_ptr<device::Device> &device) : onDevice(device), lses(device) {}
    std::vector<std::byte> out;
    std::vector<float> lse;
    device::Buffer onDevice, lses;
  };
  StateShape shape;
  std::vector<Part> parts;
  bool isReady = true;
};

/// Differences of one unit in the last place: exponentials of the host and of the GPU differ in theirs.
bool isNear(const std::vector<std::byte> &a, const std::vector<std::byte> &b, StateType type) {
  const auto read = [&](const std::vector<std::byte> &from, std::size_t element) {
    if (type == StateType::F32) {
      float value = 0;
      std::memcpy(&value, from.data() + 4 * element, 4);
      return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + 2 * element, 2);
    return exec::toFloat(bits, type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16);
  };
  const float most = type == StateType::F32 ? 1e-5f : type == StateType::F16 ? 2e-3f : 1.6e-2f;
  const std::size_t size = type == StateType::F32 ? 4 : 2;
  for (std::size_t e = 0; e < a.size() / size; ++e)
    if (!(std::fabs(read(a, e) - read(b, e)) <= most * std::max(1.f, std::fabs(read(a, e)))))
      return false;
  return true;
}

} // namespace

/// As the host's mergeStates, for each type, up to as many states as there may be.
json checkMergedStates(const Subject &subject, Findings &findings) {
  std::mt19937 random(1);
  const Stream stream(subject.device);
  int merged = 0;
  for (const StateType type : kStateTypes) {
    const auto merge = GpuStateMerge::load(subject.gpu, type);
    if (!findings.require(merge, "a merge"))
      return {};
    for (const int count : {1, 2, 3, kMostStates})
      for (const int dim : {16, 64, 80, 128, 256})
        for (const int rows : {1, 33, 1000}) {
          const StateShape shape{.rows = rows, .dim = dim, .type = type};
          States given(subject, type, count, shape, random);
          std::vector<State> host, device;
          for (const States::Part &part : given.parts) {
            host.push_back({part.out.data(), part.lse.data()});
            device.push_back({part.onDevice.as<void>(), part.lses.as<float>()});
          }
          std::vector<std::byte> expected(given.parts[0].out.size()), out(expected.size());
          std::vector<float> expectedLse(given.parts[0].lse.size()), lse(expectedLse.size());
          device::Buffer outOnDevice(subject.device), lseOnDevice(subject.device);
          const std::string what = std::to_string(count) + " states of " + std::to_string(rows) +
                                   " rows of " + std::to_string(dim);
          if (!findings.require(given.isReady && outOnDevice.reserve(out.size(), "out").ok() &&
                                    lseOnDevice.reserve(4 * lse.size(), "lse").ok(),
                                "memory of " + what) ||
              !findings.require(mergeStates(shape, host, {expected.data(), expectedLse.data()}), what) ||
              !findings.require(
                  merge->run(shape, device, {outOnDevice.as<void>(), lseOnDevice.as<float>()}, stream.get()),
                  what) ||
              !findings.require(stream.wait(), what))
            return {};
          findings.require(outOnDevice.download(out.data(), out.size()).ok() &&
                               lseOnDevice.download(lse.data(), 4 * lse.size()).ok(),
                           "what came of " + what);
          findings.require(isNear(expected, out, type), what + " are merged otherwise than on the host");
          for (std::size_t row = 0; row < lse.size(); ++row)
            if (!(lse[row] == expectedLse[row] || std::fabs(lse[row] - expectedLse[row]) < 1e-4f)) {
              findings.require(false, what + ": the lse of row " + std::to_string(row));
              break;
            }
          ++merged;
        }
  }
  return {{"merged", merged}};
}

/// A page table on the device with one entry that names no page.
json checkToldPages(const Subject &subject, Findings &findings) {
  const int pageSize = subject.variant().cache.pageSize;
  if (pageSize == 0)
    return {{"skipped", "a contiguous cache"}};
  FewShot step(8, 1000, 40);
  Memory memory(subject, step.tokens, 8);
  const Stream stream(subject.device);
  auto plan = GpuPlan::make(subject.attention, step.tree, {.checksPages = true});
  if (!findings.require(memory.isReady, "memory") || !findings.require(plan, "a plan that checks pages") ||
      !findings.require(plan->upload(stream.get()), "upload"))
    return {};
  const GpuInputs inputs{.q = memory.q.as<void>(),
                         .k = memory.k.as<void>(),
                         .v = memory.v.as<void>(),
                         .pageTable = memory.table.as<int>(),
                         .cachePages = step.tokens / pageSize + 1};
  const auto runs = [&] {
    return findings.require(
               plan->run(subject.attention, inputs, {.out = memory.out.as<void>()}, stream.get()), "a run") &&
           findings.require(stream.wait(), "the run");
  };
  if (!runs())
    return {};
  findings.require(plan->checkReplays(), "pages that are all there");
  // Within the memory, so that the run itself harms nobody: the cache is said to be smaller than it is.
  GpuInputs fewer = inputs;
  fewer.cachePages = 20;
  findings.require(plan->run(subject.attention, fewer, {.out = memory.out.as<void>()}, stream.get()),
                   "a run");
  findings.require(stream.wait(), "the run");
  const auto told = plan->checkReplays();
  findings.require(!told, "a page beyond the cache is not told");
  findings.require(plan->checkReplays(), "it is told twice");
  return {{"told", told ? std::string() : told.error().message}};
}

/// One step with K and V apart, and side by side in each token, as engines have them.
json measureLayouts(const Subject &subject, Findings &findings) {
  const spec::Variant &variant = subject.variant();
  const int pageSize = variant.cache.pageSize, dim = variant.tensors.k.dim, heads = variant.kvHeads;
  if (pageSize == 0 || dim != variant.tensors.v.dim || variant.tensors.valueInKey)
    return {{"skipped", "no pages, or unlike K and V"}};
  json all = json::array();
  for (const auto &[queries, prompt, branch] :
       {std::tuple{8, 4000, 40}, {64, 16000, 200}, {256, 500, 1000}}) {
    FewShot step(queries, prompt, branch);
    Memory apart(subject, step.tokens, queries);
    device::Buffer both(subject.device);
    const std::size_t bytes = 2ull * static_cast<std::size_t>(variant.tensors.k.elementBytes()) *
                              static_cast<std::size_t>(step.tokens + 256) * heads * dim;
    auto plan = GpuPlan::make(subject.attention, step.tree);
    if (!findings.require(apart.isReady && both.reserve(bytes, "K and V").ok() && both.fill(0, bytes).ok(),
                          "memory for the layouts") ||
        !findings.require(plan, "a plan"))
      return all;
    const GpuStream stream = subject.device->stream();
    findings.require(plan->upload(stream), "upload");
    // [page][token][head][K, then V]
    const CacheStrides strides{
        .page = 2ll * pageSize * heads * dim, .token = 2ll * heads * dim, .head = 2ll * dim};
    const GpuInputs oneByOne{.q = apart.q.as<void>(),
                             .k = apart.k.as<void>(),
                             .v = apart.v.as<void>(),
                             .pageTable = apart.table.as<int>()};
    GpuInputs sideBySide = oneByOne;
    sideBySide.k = both.as<void>();
    sideBySide.v = both.as<std::byte>() + static_cast<std::ptrdiff_t>(dim) * variant.tensors.k.elementBytes();
    sideBySide.strides = strides;
    const auto timed = [&](const GpuInputs &inputs) -> double {
      const auto timing = device::timeOnDevice(
          subject.device,
          [&]() -> support::Result<void> {
            if (auto ran = plan->run(subject.attention, inputs, {.out = apart.out.as<void>()}, stream); !ran)
              return support::Error{support::ErrorCode::Internal, ran.error().message, {}};
            return {};
          },
          {101, true});
      return findings.require(timing, "timing") ? timing->medianUs : 0;
    };
    double apartUs = 0, bothUs = 0;
    for (int round = 0; round < 3; ++round) { // in turn, the least of each
      const double one = timed(oneByOne), other = timed(sideBySide);
      apartUs = round == 0 ? one : std::min(apartUs, one);
      bothUs = round == 0 ? other : std::min(bothUs, other);
    }
    all.push_back({{"queries", queries},
                   {"tokens", step.tree.tokens()},
                   {"apart_us", apartUs},
                   {"side_by_side_us", bothUs},
                   {"times", bothUs / apartUs}});
  }
  return all;
}

} // namespace deft::gpu_test
