#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Limits.h"
#include "compiler/support/JsonFields.h"
#include "compiler/support/NearestName.h"
#include "tuner/space/Space.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace deft::space {

using nlohmann::json;
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

const char *knobName(Knob knob) { return kKnobs[static_cast<std::size_t>(knob)].name; }

constexpr std::array<CostPreset, 5> kPresets{{
    {"machine", 1, 1, 1},
    {"dear_items", 3, 1, 1},
    {"cheap_items", 0.33, 1, 1},
    {"dear_rereads", 1, 3, 1},
    {"dear_partials", 1, 1, 3},
}};

struct Range {
  int least, most;
};

/// What any machine could take, as the language has it; the rules of a machine are stricter.
Range legalRange(Knob knob) {
  switch (knob) {
  case Knob::TileQ:
  case Knob::TileKv:
    return {1, spec::kMaxTile};
  case Knob::Stages:
    return {1, spec::kMaxStages};
  case Knob::Warps:
    return {1, spec::kMaxWarps};
  default: // a chunk of 0 is open
    return {0, spec::kMaxScheduleNumber};
  }
}

json toJson(const Axis &axis) {
  json values = json::array();
  for (int value : axis.values)
    values.push_back(valueName(axis, value));
  return {{"knob", knobName(axis.knob)}, {"phase", axis.phase}, {"values", std::move(values)}};
}

Error bad(const std::string &what) { return {ErrorCode::Diagnostics, "space: " + what, ""}; }

Result<Axis> axisFromJson(const json &object, std::size_t phases) {
  Axis axis;
  const std::string knob = object.at("knob").get<std::string>();
  const auto found =
      std::find_if(kKnobs.begin(), kKnobs.end(), [&](const KnobName &k) { return knob == k.name; });
  if (found == kKnobs.end())
    return bad("no axis `" + knob + "`");
  axis.knob = found->knob;
  axis.phase = object.at("phase").get<int>();
  const bool isOfPhase = axis.knob >= Knob::RowsAbove;
  if (isOfPhase ? axis.phase < 0 || axis.phase >= static_cast<int>(phases) : axis.phase != -1)
    return bad("axis `" + knob + "` of phase " + std::to_string(axis.phase));
  for (const json &value : object.at("values")) {
    const auto number = valueFromName(axis, value.get<std::string>());
    if (!number)
      return number.error();
    axis.values.push_back(*number);
  }
  if (axis.values.empty())
    return bad("axis `" + knob + "` has no values");
  return axis;
}

} // namespace

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
    return Error{ErrorCode::Usage, "no partition `" + name + "`", ""};
  }
  if (axis.knob == Knob::Order) {
    if (const auto order = config::orderFromName(text))
      return static_cast<int>(*order);
    return Error{ErrorCode::Usage, "no order `" + name + "`", "from_root, alternate or mixed"};
  }
  if (axis.knob == Knob::Cost) {
    std::vector<std::string> known;
    for (std::size_t i = 0; i < kPresets.size(); ++i) {
      if (name == kPresets[i].name)
        return static_cast<int>(i);
      known.emplace_back(kPresets[i].name);
    }
    return Error{ErrorCode::Usage, "no prices `" + name + "`", support::didYouMean(name, known)};
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{ErrorCode::Usage, "`" + name + "` is not a number for " + knobName(axis.knob), ""};
  const Range legal = legalRange(axis.knob);
  if (value < legal.least || value > legal.most)
    return Error{ErrorCode::Usage,
                 std::string(knobName(axis.knob)) + " = " + name + " is not between " +
                     std::to_string(legal.least) + " and " + std::to_string(legal.most),
                 ""};
  return value;
}

json toJson(const Space &space) {
  const auto axesFrom = [](const std::vector<Axis> &axes, int begin, int end) {
    json list = json::array();
    for (int i = begin; i < end; ++i)
      list.push_back(toJson(axes[static_cast<std::size_t>(i)]));
    return list;
  };
  json shapes = json::array();
  for (std::size_t s = 0; s < space.shapes().size(); ++s) {
    const Shape &shape = space.shapes()[s];
    json phases = json::array();
    for (const config::PhaseConfig &phase : shape.phases)
      phases.push_back(config::toJson(phase));
    shapes.push_back({{"name", shape.name},
                      {"phases", std::move(phases)},
                      {"axes", axesFrom(shape.axes, 0, static_cast<int>(shape.axes.size()))}});
  }
  const kernels::KernelShape &kernel = space.kernel();
  return {{"query_heads", kernel.queryHeads},
          {"kv_heads", kernel.kvHeads},
          {"head_dim", kernel.headDim},
          {"target", space.target() ? std::string(space.target()->arch) : "cpu"},
          {"cost", config::toJson(space.cost())},
          {"axes", axesFrom(space.axes(0), 0, space.planAxisCount())},
          {"shapes", std::move(shapes)}};
}

Result<Space> spaceFromJson(const json &object) try {
  const kernels::KernelShape kernel{object.at("query_heads").get<int>(), object.at("kv_heads").get<int>(),
                                    object.at("head_dim").get<int>()};
  if (kernel.kvHeads <= 0 || kernel.queryHeads % kernel.kvHeads != 0)
    return bad(std::to_string(kernel.queryHeads) + " query heads over " + std::to_string(kernel.kvHeads));
  const std::string arch = object.at("target").get<std::string>();
  const target::Target *target = arch == "cpu" ? nullptr : target::findTarget(arch);
  if (!target && arch != "cpu")
    return bad("unknown target `" + arch + "`");
  const auto cost = config::costFromJson(object.at("cost"));
  if (!cost)
    return cost.error();
  std::vector<Axis> planAxes;
  for (const json &entry : object.at("axes")) {
    auto axis = axisFromJson(entry, 0);
    if (!axis)
      return axis.error();
    planAxes.push_back(std::move(*axis));
  }
  std::vector<Shape> shapes;
  for (const json &entry : object.at("shapes")) {
    Shape shape;
    shape.name = entry.at("name").get<std::string>();
    const auto phases =
        config::configFromJson({{"partition", "union"}, {"chunk_tokens", 0}, {"phases", entry.at("phases")}},
                               kernels::deviceOf(target));
    if (!phases)
      return phases.error();
    shape.phases = phases->phases;
    for (const json &own : entry.at("axes")) {
      auto axis = axisFromJson(own, shape.phases.size());
      if (!axis)
        return axis.error();
      shape.axes.push_back(std::move(*axis));
    }
    shapes.push_back(std::move(shape));
  }
  if (shapes.empty())
    return bad("it has no shape");
  return Space(kernel, target, *cost, std::move(planAxes), std::move(shapes));
} catch (const json::exception &error) {
  return bad(support::faultText(error));
}

} // namespace deft::space
