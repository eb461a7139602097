#pragma once

#include "tools/deftc/Context.h"

#include <chrono>
#include <mutex>
#include <string>

namespace deft::cli {

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

} // namespace deft::cli
