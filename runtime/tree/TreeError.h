#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <utility>

namespace deft::tree {

/// The error for an operation that a tree or a pool cannot do with its arguments.
inline support::Error wrong(std::string message, std::string hint = "") {
  return {support::ErrorCode::Diagnostics, std::move(message), std::move(hint)};
}

} // namespace deft::tree
