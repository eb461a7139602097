#pragma once

#include "tuner/session/ClassTask.h"

#include <map>

namespace deft::session {

/// The outcome of tuning one class.
struct ClassOutcome {
  ClassReport report;
  bool isCut = false;       ///< its search ran out of time
  int made = 0, reused = 0; ///< measurements
  double openSeconds = 0;   ///< for making the inputs; 0: not needed
  double untunedUs = 0;     ///< 0: not measured
  /// For each measured candidate, its time over the untuned choice's; for a recording.
  std::map<std::string, double> ratios;
};

/// Finds the config of one class: search, final, confirmation.
ClassOutcome tuneClass(const SessionContext &context, const ClassTask &task);

} // namespace deft::session
