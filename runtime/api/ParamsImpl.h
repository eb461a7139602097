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

  /// As kernels on the host take them; array slots point into this value. An error where one is missing, or
  /// in a GPU's memory.
  Result<std::vector<abi::ParamSlot>> slots() const;

  /// All of them, of this value; an error where one is missing.
  Result<std::vector<const exec::ParamValue *>> all() const;

  /// The same where the host can read them: an error also where one is in a GPU's memory.
  Result<std::vector<const exec::ParamValue *>> allOnHost() const;

  /// What the attention's mask shows with these values; one that the host cannot read bounds nothing.
  plan::Reach reach() const;
};

} // namespace deft
