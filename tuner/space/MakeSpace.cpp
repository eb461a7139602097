#include "tuner/space/MakeSpace.h"

#include "compiler/config/SharedMemory.h"
#include "compiler/support/NearestName.h"

#include <algorithm>
#include <set>

namespace deft::space {

using config::Family;
using config::PhaseConfig;
using spec::Partition;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

const std::vector<int> kChunks{0, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096};
const std::vector<int> kTileKvs{32, 64, 128}, kStages{2, 3, 4, 5}, kWarps{2, 4, 8};

int fewestRows(const spec::Variant &variant) { return (variant.ratio() + 15) / 16 * 16; }

/// Those that hold the rows of one query.
std::vector<int> tiles(const spec::Variant &variant, std::vector<int> values) {
  std::erase_if(values, [&](int value) { return value < variant.ratio(); });
  if (values.empty())
    values.push_back(fewestRows(variant));
  return values;
}

std::vector<int> valuesOr(const std::optional<spec::TuneList> &list, std::vector<int> fallback) {
  return list ? list->values : fallback;
}

Axis axis(Knob knob, int phase, std::vector<int> values) {
  if (phase >= 0 || knob == Knob::Chunk)
    std::sort(values.begin(), values.end());
  return {knob, phase, std::move(values)};
}

/// Partition, chunk, prices and, where blocks share an L2 that is slower than they are, the order.
std::vector<Axis> planAxes(const spec::Variant &variant, bool isGpu) {
  std::vector<int> partitions;
  if (variant.schedule)
    for (const Partition partition : variant.schedule->partitions)
      partitions.push_back(static_cast<int>(partition));
  if (partitions.empty())
    for (const Partition partition :
         {Partition::Auto, Partition::Union, Partition::Greedy, Partition::NodeChunk, Partition::Flatten,
          Partition::Cascade, Partition::Query, Partition::Node})
      partitions.push_back(static_cast<int>(partition));
  std::vector<int> presets;
  for (std::size_t i = 0; i < costPresets().size(); ++i)
    presets.push_back(static_cast<int>(i));
  const auto chunk = variant.schedule ? variant.schedule->chunk : std::nullopt;
  std::vector<Axis> axes{axis(Knob::Partition, -1, partitions),
                         axis(Knob::Chunk, -1, valuesOr(chunk, kChunks)), axis(Knob::Cost, -1, presets)};
  if (isGpu) {
    std::vector<int> orders;
    for (const config::Order order : config::kAllOrders)
      orders.push_back(static_cast<int>(order));
    axes.push_back(axis(Knob::Order, -1, orders));
  }
  return axes;
}

std::vector<Axis> sm80Axes(int phase, std::vector<int> tileQs) {
  return {axis(Knob::TileQ, phase, std::move(tileQs)), axis(Knob::TileKv, phase, kTileKvs),
          axis(Knob::Stages, phase, kStages), axis(Knob::Warps, phase, kWarps)};
}

void append(std::vector<Axis> &axes, const std::vector<Axis> &more) {
  axes.insert(axes.end(), more.begin(), more.end());
}

/// Phases as the schedule has them, each number with its list or its fixed value.
Shape shapeOfSchedule(const spec::Variant &variant, const std::vector<spec::PhaseSpec> &phases) {
  Shape shape{"spec", {}, {}};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const spec::PhaseSpec &spec = phases[i];
    const int phase = static_cast<int>(i);
    PhaseConfig config;
    config.name = spec.name;
    config.rowsAbove = spec.rowsAbove.value_or(-1);
    shape.phases.push_back(config);
    append(shape.axes, {axis(Knob::TileQ, phase, valuesOr(spec.tileQ, tiles(variant, {16, 32, 64, 128}))),
                        axis(Knob::TileKv, phase, valuesOr(spec.tileKv, kTileKvs)),
                        axis(Knob::Stages, phase, valuesOr(spec.stages, kStages)),
                        axis(Knob::Warps, phase, valuesOr(spec.warps, kWarps))});
  }
  return shape;
}

std::vector<Shape> gpuShapes(const spec::Variant &variant, const target::Target &target) {
  std::vector<Shape> shapes;
  const PhaseConfig sm90{"tiles", -1, Family::Sm90, 128, 64, 4, config::kSm90Warps};
  PhaseConfig wide{"wide", 16, Family::Sm80, 64, 64, 3, 4};
  const PhaseConfig narrow{"narrow", -1, Family::Sm80, 16, 64, 4, 4};
  const config::KernelShape kernel = config::KernelShape::of(variant);
  const PhaseConfig light{"tiles", -1, Family::Sm90, 64, 64, 2, config::kSm90LightWarps};
  PhaseConfig least = sm90;
  least.stages = 2;
  const bool hasSm90 = !config::brokenRule({kernel, least, target});
  const bool hasLight = !config::brokenRule({kernel, light, target}); // a query of more rows does not fit
  const std::vector<Axis> boundary{axis(Knob::RowsAbove, 0, tiles(variant, {16, 32, 64}))};
  if (hasSm90) {
    shapes.push_back(
        {"sm90", {sm90}, {axis(Knob::TileQ, 0, {64, 128}), axis(Knob::Stages, 0, {2, 3, 4, 5})}});
    if (hasLight)
      shapes.push_back({"sm90_light", {light}, {axis(Knob::Stages, 0, {2, 3, 4})}});
    const auto mix = [&](const char *name, PhaseConfig above, std::vector<Axis> axes) {
      above.name = "wide";
      above.rowsAbove = 16;
      Shape mixed{name, {above, narrow}, boundary};
      append(mixed.axes, axes);
      append(mixed.axes, sm80Axes(1, tiles(variant, {16, 32, 64})));
      shapes.push_back(std::move(mixed));
    };
    mix("sm90+sm80", sm90, {axis(Knob::TileQ, 0, {64, 128}), axis(Knob::Stages, 0, {2, 3, 4, 5})});
    if (hasLight)
      mix("sm90_light+sm80", light, {axis(Knob::Stages, 0, {2, 3, 4})});
  }
  PhaseConfig single = narrow;
  single.name = "tiles";
  shapes.push_back({"sm80", {single}, sm80Axes(0, tiles(variant, {16, 32, 64, 128}))});
  Shape two{"sm80+sm80", {wide, narrow}, boundary};
  append(two.axes, sm80Axes(0, tiles(variant, {32, 64, 128})));
  append(two.axes, sm80Axes(1, tiles(variant, {16, 32, 64})));
  shapes.push_back(std::move(two));
  return shapes;
}

/// A CPU has one kernel; a phase's tile is the most rows of an item, and its other numbers mean nothing: of
/// what a schedule lists for them the first is kept.
Shape cpuShape(const spec::Variant &variant) {
  if (variant.schedule && !variant.schedule->phases.empty()) {
    Shape shape = shapeOfSchedule(variant, variant.schedule->phases);
    for (Axis &axis : shape.axes)
      if (axis.knob != Knob::TileQ)
        axis.values.resize(1);
    return shape;
  }
  return {"cpu",
          {PhaseConfig{"tiles", -1, Family::Sm80, 64, 64, 2, 4}},
          {axis(Knob::TileQ, 0, tiles(variant, {16, 32, 64, 128, 256}))}};
}

Result<void> apply(const AxisOverride &change, std::vector<Axis> &planAxes, std::vector<Shape> &shapes) {
  bool isKnown = false;
  std::set<std::string> known;
  const auto applyTo = [&](Axis &axis, const std::vector<PhaseConfig> &phases) -> Result<void> {
    const std::string full = axisName(axis, phases), plain = full.substr(full.find('.') + 1);
    known.insert({full, plain});
    if (change.name != full && change.name != plain)
      return {};
    isKnown = true;
    axis.values.clear();
    for (const std::string &text : change.values) {
      const auto value = valueFromName(axis, text);
      if (!value)
        return value.error();
      axis.values.push_back(*value);
    }
    if (axis.isOrdered())
      std::sort(axis.values.begin(), axis.values.end());
    return {};
  };
  for (Axis &axis : planAxes)
    if (auto done = applyTo(axis, {}); !done)
      return done;
  for (Shape &shape : shapes)
    for (Axis &axis : shape.axes)
      if (auto done = applyTo(axis, shape.phases); !done)
        return done;
  if (change.name == "shape") {
    std::vector<std::string> names;
    for (const Shape &shape : shapes)
      names.push_back(shape.name);
    for (const std::string &name : change.values)
      if (std::find(names.begin(), names.end(), name) == names.end())
        return Error{ErrorCode::Usage, "no shape `" + name + "`", support::didYouMean(name, names)};
    std::erase_if(shapes, [&](const Shape &shape) {
      return std::find(change.values.begin(), change.values.end(), shape.name) == change.values.end();
    });
    return {};
  }
  if (isKnown)
    return {};
  known.insert("shape");
  std::string all;
  for (const std::string &name : known)
    all += (all.empty() ? "" : ", ") + name;
  return Error{ErrorCode::Usage, "no axis `" + change.name + "`", "the space has " + all};
}

} // namespace

Result<AxisOverride> parseOverride(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    return Error{ErrorCode::Usage, "`" + std::string(text) + "` is no axis with its values",
                 "write NAME=VALUE,VALUE, like chunk_tokens=0,256"};
  AxisOverride change{std::string(text.substr(0, equals)), {}};
  for (std::string_view rest = text.substr(equals + 1);;) {
    const std::size_t comma = rest.find(',');
    change.values.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos)
      return change;
    rest.remove_prefix(comma + 1);
  }
}

Result<Space> makeSpace(const spec::Variant &variant, const Machine &machine,
                        const std::vector<AxisOverride> &overrides) {
  std::vector<Axis> plan = planAxes(variant, machine.target != nullptr);
  std::vector<Shape> shapes;
  const bool hasPhases = variant.schedule && !variant.schedule->phases.empty();
  if (!machine.target)
    shapes.push_back(cpuShape(variant));
  else if (hasPhases)
    shapes.push_back(shapeOfSchedule(variant, variant.schedule->phases));
  else
    shapes = gpuShapes(variant, *machine.target);
  for (const AxisOverride &change : overrides)
    if (auto done = apply(change, plan, shapes); !done)
      return done.error();
  return Space(config::KernelShape::of(variant), machine.target, machine.cost, std::move(plan),
               std::move(shapes));
}

} // namespace deft::space
