#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deft::space {

/// The setting of an axis. The first four concern the whole config and need no compilation.
enum class Knob { Partition, Chunk, Cost, Order, RowsAbove, TileQ, TileKv, Stages, Warps };

const char *knobName(Knob knob); ///< as in a config's JSON
std::optional<Knob> knobFromName(std::string_view name);

/// A number of a config and the values that it may take.
struct Axis {
  Knob knob = Knob::Chunk;
  int phase = -1;          ///< of the shape, by its index; -1: for the whole config
  std::vector<int> values; ///< Partition: spec::Partition's number; Cost: an index of costPresets(); Order

  /// If ordered, neighbours have adjacent values; otherwise any two values are neighbours.
  bool isOrdered() const { return knob != Knob::Partition && knob != Knob::Cost && knob != Knob::Order; }
};

/// Prices that change the planner's decisions: factors on the machine's prices.
struct CostPreset {
  const char *name;
  double item = 1;    ///< for the start of an item
  double again = 1;   ///< for reading tokens again
  double partial = 1; ///< for a partial
};
std::span<const CostPreset> costPresets();
config::CostCoefficients withPreset(config::CostCoefficients cost, const CostPreset &preset);

/// "partition", "chunk_tokens", "wide.tile_q".
std::string axisName(const Axis &axis, std::span<const config::PhaseConfig> phases);
/// A value in text for people and files: "union", "256".
std::string valueName(const Axis &axis, int value);
support::Result<int> valueFromName(const Axis &axis, std::string_view text);

} // namespace deft::space
