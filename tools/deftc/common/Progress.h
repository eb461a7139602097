#pragma once

#include "tools/deftc/common/Context.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace deft::cli {

/// The beginning of the text, short enough to keep the last column of a line free.
std::string fitted(const std::string &text, std::size_t columns);

/// Reports the progress of long work on the error stream: nothing in the first second; then a line that is
/// updated in place on a terminal, or else a new line at most every ten seconds. Any thread may call it.
class Progress {
public:
  Progress(Context &context, std::string what);
  /// Erases the line.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void at(long long done, long long of);
  /// Shows a text behind the name of the work; does nothing if it is too early for another line.
  void say(const std::string &text);
  /// Prints a line that stays.
  void note(const std::string &line);

private:
  using Clock = std::chrono::steady_clock;

  void wipe();
  void show(const std::string &text, Clock::time_point now);

  Context &context_;
  std::string what_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
  bool hasLine_ = false;
  std::mutex mutex_;
};

/// For long work without known progress: while this object lives, a line shows the work and its duration,
/// like Progress. Meanwhile nothing else may write to the error stream, and the process must not fork.
class Underway {
public:
  Underway(Context &context, std::string what);
  ~Underway();
  Underway(const Underway &) = delete;
  Underway &operator=(const Underway &) = delete;

private:
  void keepSaying();

  Progress progress_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool isEnded_ = false; ///< guarded by mutex_
  std::thread thread_;   ///< last, since it uses all other members
};

} // namespace deft::cli
