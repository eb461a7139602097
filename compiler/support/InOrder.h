#pragma once

#include "compiler/support/Result.h"

namespace deft::support {

/// Calls the steps, functions that give a Result<void>, until one fails: its failure, or none.
template <typename... Steps> Result<void> inOrder(Steps... steps) {
  Result<void> result;
  ((result = steps(), result.ok()) && ...);
  return result;
}

} // namespace deft::support
