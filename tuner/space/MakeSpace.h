#pragma once

#include "compiler/spec/Variant.h"
#include "tuner/space/Space.h"

namespace deft::space {

/// What a space needs to know of the machine that its configs are for.
struct MachineFacts {
  const target::Target *target = nullptr; ///< null: a CPU
  config::CostCoefficients cost;
  kernels::Families families = kernels::families();
};

/// One axis held to fewer values, or given others: "chunk_tokens=0,256", "tile_q=64". A name without a phase
/// means the axis of every phase.
struct AxisOverride {
  std::string name;
  std::vector<std::string> values;
};
support::Result<AxisOverride> parseOverride(std::string_view text);

/// What the spec's schedule lists, and where it lists nothing all that the kernels of the machine can do.
/// An override that fits no axis is an error.
support::Result<Space> makeSpace(const spec::Variant &variant, const MachineFacts &machine,
                                 const std::vector<AxisOverride> &overrides = {});

} // namespace deft::space
