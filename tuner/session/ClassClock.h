#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace deft::session {

/// How long a class may go on: its search, and the final and the confirmation, which get the rest.
class ClassClock {
public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  /// `deadline` none: as long as it takes. `sessionEnd` none: the session has no budget.
  ClassClock(Time start, std::optional<Time> deadline, std::optional<Time> sessionEnd)
      : start_(start), deadline_(deadline), sessionEnd_(sessionEnd) {}

  /// What the class cannot do without is not its search's time: it puts the deadline off. But the session
  /// ends when it ends.
  void addSetup(Clock::duration taken);
  void addMeasurement(Clock::duration taken);

  bool isSearchOver(Time now = Clock::now()) const;
  bool isOver(Time now = Clock::now()) const { return deadline_ && now > *deadline_; }
  /// Whether so many more measurements fit in, by what those until now took.
  bool isTimeFor(std::size_t measurements, Time now = Clock::now()) const;

  double secondsTaken(Time now = Clock::now()) const;
  /// Until the session ends; none: it has no budget.
  std::optional<double> secondsLeft(Time now = Clock::now()) const;

private:
  Time start_;
  std::optional<Time> deadline_, sessionEnd_;
  Clock::duration setup_{}, measuring_{};
  std::size_t measurements_ = 0;
};

} // namespace deft::session
