#pragma once

#include "tests/bench/SecondsSince.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace deft {

/// Whether another thread is busy on this core: additions that do not wait for each other then take longer
/// than the least time that they have taken so far.
class CoreProbe {
public:
  bool isAlone() {
    const double now = additions();
    least_ = std::min(least_, now);
    return now < least_ * kMost;
  }

private:
  static constexpr int kRounds = 800; // half a microsecond
  static constexpr double kMost = 1.25;

#if defined(__x86_64__)
  static double additions() {
    unsigned long a = 0, b = 0, c = 0, d = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i)
      asm volatile("add $1,%0\n\tadd $1,%1\n\tadd $1,%2\n\tadd $1,%3\n\t"
                   "add $3,%0\n\tadd $3,%1\n\tadd $3,%2\n\tadd $3,%3"
                   : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                   :
                   : "cc");
    return secondsSince(begin);
  }
#else
  static double additions() { return 1; } // always
#endif

  static inline double least_ = 1; ///< of this process
};

/// Times steps one by one, and says what those took that had the core for themselves.
class StepTimer {
public:
  explicit StepTimer(benchmark::State &state) : state_(state) {}
  ~StepTimer() {
    if (steps_ == 0)
      return;
    const double share = static_cast<double>(alone_.size()) / static_cast<double>(steps_);
    state_.counters["alone"] = share;
    if (share < kLeastShare)
      return;
    const auto middle = alone_.begin() + static_cast<std::ptrdiff_t>(alone_.size() / 2);
    std::nth_element(alone_.begin(), middle, alone_.end());
    state_.counters["alone_us"] = *middle * 1e6;
  }
  void begin() {
    wasAlone_ = core_.isAlone();
    begin_ = std::chrono::steady_clock::now();
  }
  void end() {
    const double seconds = secondsSince(begin_);
    state_.SetIterationTime(seconds);
    ++steps_;
    if (core_.isAlone() && wasAlone_)
      alone_.push_back(seconds);
  }

private:
  /// Where fewer are, the other thread works in bursts, some of them between the additions.
  static constexpr double kLeastShare = 0.6;

  benchmark::State &state_;
  CoreProbe core_;
  std::chrono::steady_clock::time_point begin_;
  bool wasAlone_ = false;
  std::size_t steps_ = 0;
  std::vector<double> alone_;
};

} // namespace deft
