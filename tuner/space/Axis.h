#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deft::space {

/// What an axis turns. The first four are of the whole config and cost no compilation.
enum class Knob { Partition, Chunk, Cost, Order, RowsAbove, TileQ, TileKv, Stages, Warps };

const char *knobName(Knob knob); ///< as a config's JSON has it
std::optional<Knob> knobFromName(std::string_view name);

/// A number of a config and the values that it may take.
struct Axis {
  Knob knob = Knob::Chunk;
  int phase = -1;          ///< of the shape, whose number it is; -1: of the whole config
  std::vector<int> values; ///< Partition: spec::Partition's number; Cost: an index of costPresets(); Order

  /// Neighbours on it are values beside each other; else any two values are.
  bool isOrdered() const { return knob != Knob::Partition && knob != Knob::Cost && knob != Knob::Order; }
};

/// Prices that make the planner's comparisons come out otherwise: factors on the machine's.
struct CostPreset {
  const char *name;
  double item = 1;    ///< of an item's start
  double again = 1;   ///< of reading tokens again
  double partial = 1; ///< of a partial
};
std::span<const CostPreset> costPresets();
config::CostCoefficients withPreset(config::CostCoefficients cost, const CostPreset &preset);

/// "partition", "chunk_tokens", "wide.tile_q".
std::string axisName(const Axis &axis, std::span<const config::PhaseConfig> phases);
/// One value, as people and files write it: "union", "256".
std::string valueName(const Axis &axis, int value);
support::Result<int> valueFromName(const Axis &axis, std::string_view text);

} // namespace deft::space
