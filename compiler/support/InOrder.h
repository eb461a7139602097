#pragma once

#include "compiler/support/Result.h"

namespace deft::support {

/// Calls the steps, functions that return Result<void>, until one fails. Returns its error, or success.
template <typename... Steps> Result<void> inOrder(Steps... steps) {
  Result<void> result;
  ((result = steps(), result.ok()) && ...);
  return result;
}

} // namespace deft::support
