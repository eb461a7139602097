#include "tuner/space/Axis.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace deft::space {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct KnobName {
  Knob knob;
  const char *name;
};
constexpr std::array<KnobName, 9> kKnobs{{{Knob::Partition, "partition"},
                                          {Knob::Chunk, "chunk_tokens"},
                                          {Knob::Cost, "prices"},
                                          {Knob::Order, "order"},
                                          {Knob::RowsAbove, "rows_above"},
                                          {Knob::TileQ, "tile_q"},
                                          {Knob::TileKv, "tile_kv"},
                                          {Knob::Stages, "stages"},
                                          {Knob::Warps, "warps"}}};

constexpr std::array<CostPreset, 5> kPresets{{
    {"machine", 1, 1, 1},
    {"dear_items", 3, 1, 1},
    {"cheap_items", 0.33, 1, 1},
    {"dear_rereads", 1, 3, 1},
    {"dear_partials", 1, 1, 3},
}};

struct LegalRange {
  int least, most;
};

/// The limits for any machine, from the language; the rules of a machine are stricter.
LegalRange legalRange(Knob knob) {
  switch (knob) {
  case Knob::TileQ:
  case Knob::TileKv:
    return {1, spec::kMaxTile};
  case Knob::Stages:
    return {1, spec::kMaxStages};
  case Knob::Warps:
    return {1, spec::kMaxWarps};
  default: // a chunk of 0 is unlimited
    return {0, spec::kMaxScheduleNumber};
  }
}

/// With a hint: the nearest known name, otherwise all of them.
Error unknown(const char *what, const std::string &name, const std::vector<std::string> &known) {
  std::string hint = support::didYouMean(name, known);
  if (hint.empty())
    for (const std::string &one : known)
      hint += (hint.empty() ? "it is one of " : ", ") + one;
  return {ErrorCode::Usage, "no " + std::string(what) + " `" + name + "`", hint};
}

} // namespace

const char *knobName(Knob knob) { return kKnobs[static_cast<std::size_t>(knob)].name; }

std::optional<Knob> knobFromName(std::string_view name) {
  const auto found =
      std::find_if(kKnobs.begin(), kKnobs.end(), [&](const KnobName &knob) { return name == knob.name; });
  return found == kKnobs.end() ? std::nullopt : std::optional(found->knob);
}

std::span<const CostPreset> costPresets() { return kPresets; }

config::CostCoefficients withPreset(config::CostCoefficients cost, const CostPreset &preset) {
  cost.itemUs *= preset.item;
  cost.againGBs /= preset.again;
  cost.partialGBs /= preset.partial;
  return cost;
}

std::string axisName(const Axis &axis, std::span<const config::PhaseConfig> phases) {
  return axis.phase < 0 ? knobName(axis.knob)
                        : phases[static_cast<std::size_t>(axis.phase)].name + "." + knobName(axis.knob);
}

std::string valueName(const Axis &axis, int value) {
  switch (axis.knob) {
  case Knob::Partition:
    return config::partitionName(static_cast<spec::Partition>(value));
  case Knob::Cost:
    return kPresets[static_cast<std::size_t>(value)].name;
  case Knob::Order:
    return config::orderName(static_cast<config::Order>(value));
  default:
    return std::to_string(value);
  }
}

Result<int> valueFromName(const Axis &axis, std::string_view text) {
  const std::string name(text);
  if (axis.knob == Knob::Partition) {
    if (const auto partition = config::partitionFromName(text))
      return static_cast<int>(*partition);
    return unknown("partition", name, spec::partitionNames());
  }
  if (axis.knob == Knob::Order) {
    if (const auto order = config::orderFromName(text))
      return static_cast<int>(*order);
    std::vector<std::string> known;
    for (const config::Order order : config::kAllOrders)
      known.push_back(config::orderName(order));
    return unknown("order", name, known);
  }
  if (axis.knob == Knob::Cost) {
    std::vector<std::string> known;
    for (std::size_t i = 0; i < kPresets.size(); ++i) {
      if (name == kPresets[i].name)
        return static_cast<int>(i);
      known.emplace_back(kPresets[i].name);
    }
    return unknown("prices", name, known);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{ErrorCode::Usage, "`" + name + "` is not a number for " + knobName(axis.knob), ""};
  const LegalRange legal = legalRange(axis.knob);
  if (value < legal.least || value > legal.most)
    return Error{ErrorCode::Usage,
                 std::string(knobName(axis.knob)) + " = " + name + " is not between " +
                     std::to_string(legal.least) + " and " + std::to_string(legal.most),
                 ""};
  return value;
}

} // namespace deft::space
