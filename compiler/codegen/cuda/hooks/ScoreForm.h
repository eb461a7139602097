#pragma once

#include "compiler/dialect/Deft.h"

#include <optional>

namespace deft::codegen::cuda {

/// A form of score that the device computes in fewer operations than its expression:
///   cap * tanh(rate * s) + slope * (kv_pos - origin)
/// Without a cap, s replaces the first product; without a slope, there is no second one. All values are
/// constant for a row; a missing value is 1.
struct ScoreForm {
  bool isCapped = false, isSloped = false;
  mlir::Value cap, rate, slope, origin;
  bool hasOneCap = false; ///< all rows have the same cap and rate
  bool isFalling = false; ///< the slope must be negated
};

/// The form of the region `score` after optimisation; none if it does not have this form.
std::optional<ScoreForm> scoreForm(mlir::Region &score);

} // namespace deft::codegen::cuda
