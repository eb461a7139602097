#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/plan/Reach.h"

#include <deft/attention.hpp>

#include <optional>

namespace deft {

struct Params::Impl {
  explicit Impl(Attention of) : attention(std::move(of)), values(attention.params().size()) {}

  Attention attention;
  std::vector<std::optional<exec::ParamValue>> values; ///< none: not given, and no default

  /// As kernels take them; array slots point into this value. An error where one is missing.
  Result<std::vector<abi::ParamSlot>> slots() const;

  /// An error where one is missing.
  Result<void> checkAllGiven() const;

  /// What the attention's mask shows with these values; one that is missing bounds nothing.
  plan::Reach reach() const;
};

} // namespace deft
