#pragma once

#include "runtime/device/Device.h"

#include <functional>

namespace deft::device {

struct TimerOptions {
  int repeats = 41;
  bool coldL2 = true; ///< evicts the L2 cache before each run; false: an untimed run comes first
};

struct Timing {
  double medianUs = 0;
  double fastestUs = 0;
  double slowestUs = 0;
};

/// The GPU time of the work that `enqueue` puts on the device's stream, without the host's share: the work is
/// captured once as a graph and replayed between two events. For many measurements, one after the other, in
/// one thread at a time.
class Timer {
public:
  static support::Result<Timer> create(std::shared_ptr<Device> device);

  support::Result<Timing> time(const std::function<support::Result<void>()> &enqueue,
                               const TimerOptions &options) const;

private:
  Timer(std::shared_ptr<Device> device, Kernel evict, Buffer large, std::size_t evictBytes)
      : device_(std::move(device)), evict_(std::move(evict)), large_(std::move(large)),
        evictBytes_(evictBytes) {}

  std::shared_ptr<Device> device_;
  Kernel evict_;
  Buffer large_; ///< reading it evicts L2
  std::size_t evictBytes_;
};

/// For callers that measure once.
support::Result<Timing> timeOnDevice(const std::shared_ptr<Device> &device,
                                     const std::function<support::Result<void>()> &enqueue,
                                     const TimerOptions &options);

} // namespace deft::device
