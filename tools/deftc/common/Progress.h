#pragma once

#include "tools/deftc/common/Context.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace deft::cli {

/// As much of the beginning as leaves the last column of a line free.
std::string fitted(const std::string &text, std::size_t columns);

/// Says on the error stream how far long work is: nothing in the first second, then a line that is written
/// over on a terminal and at most one every ten seconds elsewhere. May be told from any thread.
class Progress {
public:
  Progress(Context &context, std::string what);
  /// Wipes the line.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void at(long long done, long long of);
  /// Any text, behind what the work is called; where it is too soon for another line, nothing.
  void say(const std::string &text);
  /// A line that stays.
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

/// Long work that cannot say how far it is: while this lives, a line says what is done and since when, as
/// Progress says it. Nobody else may write to the error stream meanwhile, and no child be forked.
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
  std::thread thread_;   ///< last: it uses all the others
};

} // namespace deft::cli
