#pragma once

#include "runtime/api/Attention.h"
#include "runtime/api/Call.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Reach.h"

#include <optional>
#include <vector>

struct deft_params {
  std::shared_ptr<const deft::api::Attention> attention;
  std::vector<std::optional<deft::exec::ParamValue>> values; ///< none: not given, and no default

  /// Starts with the defaults.
  explicit deft_params(const deft_attention &of);

  const deft::spec::Variant &variant() const { return attention->variant(); }

  /// An error if it belongs to another attention. `field` is its name in the call.
  deft::api::Result<void> checkIsOf(const deft::api::Attention &other, const char *field = "params") const;

  /// All parameters with their values; an error if one is missing.
  deft::api::Result<std::vector<const deft::exec::ParamValue *>> all() const;
  /// The same if the host can read them: also an error if one is in a GPU's memory.
  deft::api::Result<std::vector<const deft::exec::ParamValue *>> allOnHost() const;
  /// In the format of kernels on the host; slots of arrays point into this value.
  deft::api::Result<std::vector<deft::abi::ParamSlot>> slots() const;

  /// The reach of the attention's mask with these values; a value that the host cannot read sets no bound.
  deft::plan::Reach reach() const;
};
