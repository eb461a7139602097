#pragma once

#include "compiler/spec/Variant.h"
#include "tuner/space/Space.h"

namespace deft::space {

/// The data about a machine that a space of configs depends on.
struct MachineFacts {
  const target::Target *target = nullptr; ///< null: a CPU
  config::CostCoefficients cost;
  kernels::Families families = kernels::families();
};

/// Limits an axis to fewer values, or gives it others: "chunk_tokens=0,256", "tile_q=64". A name without a
/// phase means the axis of every phase.
struct AxisOverride {
  std::string name;
  std::vector<std::string> values;
};
support::Result<AxisOverride> parseOverride(std::string_view text);

/// The lists of the spec's schedule, or, without a list, everything that the machine's kernels support. An
/// override that fits no axis is an error.
support::Result<Space> makeSpace(const spec::Variant &variant, const MachineFacts &machine,
                                 const std::vector<AxisOverride> &overrides = {});

} // namespace deft::space
