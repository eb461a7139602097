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

  /// With the defaults.
  explicit deft_params(const deft_attention &of);

  const deft::spec::Variant &variant() const { return attention->variant(); }

  /// An error where it is of another attention. `field` names it in the call.
  deft::api::Result<void> checkIsOf(const deft::api::Attention &other, const char *field = "params") const;

  /// All of them, of this value; an error where one is missing.
  deft::api::Result<std::vector<const deft::exec::ParamValue *>> all() const;
  /// The same where the host can read them: an error also where one is in a GPU's memory.
  deft::api::Result<std::vector<const deft::exec::ParamValue *>> allOnHost() const;
  /// As kernels on the host take them; array slots point into this value.
  deft::api::Result<std::vector<deft::abi::ParamSlot>> slots() const;

  /// What the attention's mask shows with these values; one that the host cannot read bounds nothing.
  deft::plan::Reach reach() const;
};
