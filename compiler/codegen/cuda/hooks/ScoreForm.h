#pragma once

#include "compiler/dialect/Deft.h"

#include <optional>

namespace deft::codegen::cuda {

/// A score of a form that the device computes in a shorter way than its expression:
///   cap * tanh(rate * s) + slope * (kv_pos - origin)
/// with s in place of the first product where it is not capped, and without the second where it is not
/// sloped. All values are the same for a row; one that is missing is 1.
struct ScoreForm {
  bool isCapped = false, isSloped = false;
  mlir::Value cap, rate, slope, origin;
  bool hasOneCap = false; ///< all rows have the same cap and rate
  bool isFalling = false; ///< the slope is to be negated
};

/// Of the region `score` after optimisation; none where it has no such form.
std::optional<ScoreForm> scoreForm(mlir::Region &score);

} // namespace deft::codegen::cuda
