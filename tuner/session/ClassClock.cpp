#include "tuner/session/ClassClock.h"

#include <algorithm>

namespace deft::session {
namespace {

/// The share of the class's time for the final and the confirmation.
constexpr double kFinalShare = 0.3;

double secondsOf(ClassClock::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

} // namespace

void ClassClock::addSetup(Clock::duration taken) {
  setup_ += taken;
  if (deadline_)
    *deadline_ = sessionEnd_ ? std::min(*deadline_ + taken, *sessionEnd_) : *deadline_ + taken;
}

void ClassClock::addMeasurement(Clock::duration taken) {
  measuring_ += taken;
  ++measurements_;
}

bool ClassClock::isSearchOver(Time now) const {
  if (!deadline_)
    return false;
  return secondsOf(now - start_ - setup_) > (1 - kFinalShare) * secondsOf(*deadline_ - start_ - setup_);
}

bool ClassClock::isTimeFor(std::size_t measurements, Time now) const {
  if (!deadline_ || measurements_ == 0)
    return true;
  const double each = secondsOf(measuring_) / static_cast<double>(measurements_);
  return static_cast<double>(measurements) * each <= secondsOf(*deadline_ - now);
}

double ClassClock::secondsTaken(Time now) const { return secondsOf(now - start_); }

std::optional<double> ClassClock::secondsLeft(Time now) const {
  if (!sessionEnd_)
    return std::nullopt;
  return std::max(0.0, secondsOf(*sessionEnd_ - now));
}

} // namespace deft::session
