#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace deft::session {

/// The time limits of a class: of its search, and of the final and the confirmation, which get the rest.
class ClassClock {
public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  /// `deadline` none: no limit. `sessionEnd` none: the session has no budget.
  ClassClock(Time start, std::optional<Time> deadline, std::optional<Time> sessionEnd)
      : start_(start), deadline_(deadline), sessionEnd_(sessionEnd) {}

  /// Setup that the class needs does not count as search time: it extends the deadline, but not the session's
  /// end.
  void addSetup(Clock::duration taken);
  void addMeasurement(Clock::duration taken);

  bool isSearchOver(Time now = Clock::now()) const;
  bool isOver(Time now = Clock::now()) const { return deadline_ && now > *deadline_; }
  /// Whether `measurements` more fit in, judged by the earlier ones.
  bool isTimeFor(std::size_t measurements, Time now = Clock::now()) const;

  double secondsTaken(Time now = Clock::now()) const;
  /// The time until the session ends; none: it has no budget.
  std::optional<double> secondsLeft(Time now = Clock::now()) const;

private:
  Time start_;
  std::optional<Time> deadline_, sessionEnd_;
  Clock::duration setup_{}, measuring_{};
  std::size_t measurements_ = 0;
};

} // namespace deft::session
