#include "tuner/bench/CeilingProbe.h"

#include "compiler/target/Target.h"
#include "runtime/device/Timer.h"
#include "runtime/nvrtc/Nvrtc.h"
#include "tuner/bench/ProbeKernels.h"

#include <algorithm>
#include <utility>

namespace deft::bench {

using support::Error;
using support::ErrorCode;
using support::Result;

struct CeilingProbe::Kernels {
  device::Kernel empty, fill, loads, bulk, matrix;
  bool hasBulk = false;
};

CeilingProbe::CeilingProbe(std::shared_ptr<device::Device> device)
    : device_(std::move(device)), buffer_(device_) {}

Result<CeilingProbe> CeilingProbe::open(std::shared_ptr<device::Device> device) {
  const device::DeviceFacts &facts = device->facts();
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  if (!target)
    return Error{ErrorCode::Environment, "no ceilings can be measured on " + facts.name,
                 "deftc knows " + target::targetNames()};
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.error();
  const auto compiled = (*nvrtc)->compile("ceiling_probe.cu", std::string(kProbeSource), target->arch);
  if (!compiled)
    return compiled.error();
  const bool hasBulk = facts.major >= 9;
  const auto load = [&](const char *entry, int threads, int smem) {
    return device::Kernel::load(device, compiled->cubin, entry, threads, smem);
  };
  auto empty = load(kProbeEmpty, kProbeThreads, 0), fill = load(kProbeFill, kProbeThreads, 0),
       loads = load(kProbeLoads, kProbeThreads, 0),
       bulk = load(kProbeBulk, kProbeBulkThreads, hasBulk ? kProbeBulkSmem : 0),
       matrix = load(kProbeMatrix, kProbeMatrixThreads, kProbeMatrixSmem);
  for (const auto *loaded : {&empty, &fill, &loads, &bulk, &matrix})
    if (!*loaded)
      return loaded->error();
  CeilingProbe probe(device);
  probe.kernels_ = std::make_shared<Kernels>(Kernels{std::move(*empty), std::move(*fill), std::move(*loads),
                                                     std::move(*bulk), std::move(*matrix), hasBulk});
  return probe;
}

Result<void> CeilingProbe::reserve(std::size_t bytes) {
  if (bytes <= filledBytes_)
    return {};
  if (auto reserved = buffer_.reserve(bytes, "the read ceiling"); !reserved)
    return reserved;
  void *address = buffer_.as<void>();
  std::uint64_t count = bytes;
  void *params[] = {static_cast<void *>(&address), &count};
  filledBytes_ = bytes;
  if (auto filled = kernels_->fill.launch(static_cast<unsigned>(kernels_->fill.blocksAtOnce()), params);
      !filled)
    return filled;
  return device_->synchronize("filling the buffer of the read ceiling failed");
}

Result<double> CeilingProbe::loadsUs(std::size_t bytes, int repeats) {
  void *address = buffer_.as<void>(), *sink = address;
  std::uint64_t count = bytes;
  void *params[] = {static_cast<void *>(&address), &count, static_cast<void *>(&sink)};
  const std::size_t wanted = (bytes / 16 + kProbeThreads - 1) / kProbeThreads;
  const auto most = static_cast<std::size_t>(kernels_->loads.blocksAtOnce());
  double bestUs = 0;
  // All threads that fit, or half of them with twice the loads each: the faster one depends on the size.
  for (const std::size_t blocks : {most, most / 2}) {
    const auto grid = static_cast<unsigned>(std::max<std::size_t>(std::min(blocks, wanted), 1));
    const auto timed =
        device::timeOnDevice(device_, [&] { return kernels_->loads.launch(grid, params); }, {repeats, true});
    if (!timed)
      return timed.error();
    if (bestUs == 0 || timed->medianUs < bestUs)
      bestUs = timed->medianUs;
  }
  return bestUs;
}

Result<double> CeilingProbe::bulkUs(std::size_t bytes, int repeats) {
  void *address = buffer_.as<void>();
  double bestUs = 0;
  for (int chunk : {2048, 4096, 8192, 16384}) {
    std::uint64_t count = bytes / chunk * chunk;
    int stages = std::min(kProbeRingBytes / chunk, kProbeMostStages);
    void *params[] = {static_cast<void *>(&address), &count, &chunk, &stages};
    const auto grid = static_cast<unsigned>(kernels_->bulk.blocksAtOnce());
    if (count == 0)
      break;
    const auto timed =
        device::timeOnDevice(device_, [&] { return kernels_->bulk.launch(grid, params); }, {repeats, true});
    if (!timed)
      return timed.error();
    if (bestUs == 0 || timed->medianUs < bestUs)
      bestUs = timed->medianUs;
  }
  return bestUs;
}

Result<ReadTime> CeilingProbe::read(std::size_t bytes, int repeats) {
  if (auto reserved = reserve(std::max<std::size_t>(bytes, 16)); !reserved)
    return reserved.error();
  ReadTime time;
  time.mib = static_cast<double>(bytes) / (1 << 20);
  const auto loads = loadsUs(bytes, repeats);
  if (!loads)
    return loads.error();
  time.loadsUs = *loads;
  if (kernels_->hasBulk) {
    const auto bulk = bulkUs(bytes, repeats);
    if (!bulk)
      return bulk.error();
    time.bulkUs = *bulk;
  }
  if (bytes >= std::size_t{512} << 20)
    largestReadGBs_ = std::max(largestReadGBs_, static_cast<double>(bytes) / time.bestUs() * 1e-3);
  constexpr double kStartUs = 2; // the launch takes at least this part of a read's time
  if (largestReadGBs_ > 0 &&
      static_cast<double>(bytes) / (time.bulkUs - kStartUs) * 1e-3 > 1.03 * largestReadGBs_)
    time.bulkUs = 0;
  return time;
}

Result<double> CeilingProbe::unitsTFlops(spec::DType dtype, int repeats) {
  void *sink = buffer_.as<void>();
  int rounds = 20'000, isBf16 = dtype == spec::DType::BF16; // several milliseconds
  void *params[] = {static_cast<void *>(&sink), &rounds, &isBf16};
  const int grid = device_->facts().multiprocessors;
  const auto timed = device::timeOnDevice(
      device_, [&] { return kernels_->matrix.launch(static_cast<unsigned>(grid), params); }, {repeats, true});
  if (!timed)
    return timed.error();
  constexpr int kWarps = kProbeMatrixThreads / 32;
  return grid * kWarps * kProbeMatrixWarpFlops * rounds / timed->medianUs * 1e-6;
}

Result<MeasuredCeilings> CeilingProbe::measure(int repeats) {
  MeasuredCeilings ceilings;
  const auto empty =
      device::timeOnDevice(device_, [&] { return kernels_->empty.launch(1, nullptr); }, {repeats, true});
  if (!empty)
    return empty.error();
  ceilings.launchUs = empty->medianUs;
  // The largest first: its rate shows which of the others cannot have been cold.
  for (auto mib = std::rbegin(kReadSizesMib); mib != std::rend(kReadSizesMib); ++mib) {
    const auto time = read(static_cast<std::size_t>(*mib) << 20, repeats);
    if (!time)
      return time.error();
    ceilings.reads.insert(ceilings.reads.begin(), *time);
  }
  for (auto [dtype, rate] : {std::pair{spec::DType::F16, &ceilings.units.f16},
                             std::pair{spec::DType::BF16, &ceilings.units.bf16}}) {
    const auto units = unitsTFlops(dtype, 5);
    if (!units)
      return units.error();
    *rate = *units;
  }
  return ceilings;
}

} // namespace deft::bench
