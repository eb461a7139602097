#pragma once

#include "tuner/session/ClassTask.h"

#include <map>

namespace deft::session {

/// What tuning one class came to.
struct ClassOutcome {
  ClassReport report;
  bool isCut = false;       ///< its search ended because its time was over
  int made = 0, reused = 0; ///< measurements
  double openSeconds = 0;   ///< that making the inputs took; 0: they were not needed
  double untunedUs = 0;     ///< 0: it was not measured
  /// Of every candidate that was measured, its time over the untuned choice's; for a recording.
  std::map<std::string, double> ratios;
};

/// Finds the config of one class: search, final, confirmation.
ClassOutcome tuneClass(const SessionContext &context, const ClassTask &task);

} // namespace deft::session
