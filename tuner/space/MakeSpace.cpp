#include "tuner/space/MakeSpace.h"

#include "compiler/kernels/Legality.h"
#include "compiler/support/NearestName.h"
#include "runtime/plan/Auto.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace deft::space {

using config::PhaseConfig;
using kernels::KernelShape;
using kernels::TunedPhase;
using kernels::TunedPhases;
using spec::Partition;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::array kChunks{0, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096};

std::vector<int> valuesOr(const std::optional<spec::TuneList> &list, const std::vector<int> &fallback) {
  return list ? list->values : fallback;
}

Axis axis(Knob knob, int phase, std::vector<int> values) {
  if (phase >= 0 || knob == Knob::Chunk)
    std::sort(values.begin(), values.end());
  return {knob, phase, std::move(values)};
}

/// Partition, chunk, prices and, if blocks share an L2 that limits them, the order.
std::vector<Axis> planAxes(const spec::Variant &variant, bool isGpu) {
  std::vector<int> partitions;
  if (variant.schedule)
    for (const Partition partition : variant.schedule->partitions)
      partitions.push_back(static_cast<int>(partition));
  if (partitions.empty()) {
    partitions.push_back(static_cast<int>(Partition::Auto));
    for (const Partition partition : plan::kAutoPartitions)
      partitions.push_back(static_cast<int>(partition));
  }
  std::vector<int> presets;
  presets.reserve(costPresets().size());
  for (std::size_t i = 0; i < costPresets().size(); ++i)
    presets.push_back(static_cast<int>(i));
  const auto chunk = variant.schedule ? variant.schedule->chunk : std::nullopt;
  std::vector<Axis> axes{axis(Knob::Partition, -1, partitions),
                         axis(Knob::Chunk, -1, valuesOr(chunk, {kChunks.begin(), kChunks.end()})),
                         axis(Knob::Cost, -1, presets)};
  if (isGpu) {
    std::vector<int> orders;
    orders.reserve(config::kAllOrders.size());
    for (const config::Order order : config::kAllOrders)
      orders.push_back(static_cast<int>(order));
    axes.push_back(axis(Knob::Order, -1, orders));
  }
  return axes;
}

/// The axes of a phase, in the order of writing and searching.
void append(std::vector<Axis> &axes, const TunedPhase &tuned, int phase) {
  for (const auto &[knob, values] :
       {std::pair{Knob::RowsAbove, &tuned.rowsAbove}, std::pair{Knob::TileQ, &tuned.tileQ},
        std::pair{Knob::TileKv, &tuned.tileKv}, std::pair{Knob::Stages, &tuned.stages},
        std::pair{Knob::Warps, &tuned.warps}})
    if (!values->empty())
      axes.push_back(axis(knob, phase, *values));
}

SpaceShape shapeOf(const TunedPhases &tuned) {
  SpaceShape shape{tuned.name, {}, {}};
  for (const TunedPhase &one : tuned.phases) {
    append(shape.axes, one, static_cast<int>(shape.phases.size()));
    shape.phases.push_back(one.phase);
  }
  return shape;
}

/// Phases of the schedule, each number with its list or the family's values; for a number without effect only
/// the first value.
SpaceShape shapeOf(const spec::ScheduleSpec &schedule, const spec::Variant &variant,
                   const kernels::Family &family) {
  const TunedPhase usual = family.tunedOfSchedule(KernelShape::of(variant));
  TunedPhases tuned{"spec", {}};
  for (const spec::PhaseSpec &spec : schedule.phases) {
    PhaseConfig phase = usual.phase;
    phase.name = spec.name;
    phase.rowsAbove = spec.rowsAbove.value_or(-1);
    tuned.phases.push_back({.phase = std::move(phase),
                            .rowsAbove = {},
                            .tileQ = valuesOr(spec.tileQ, usual.tileQ),
                            .tileKv = valuesOr(spec.tileKv, usual.tileKv),
                            .stages = valuesOr(spec.stages, usual.stages),
                            .warps = valuesOr(spec.warps, usual.warps)});
  }
  SpaceShape shape = shapeOf(tuned);
  if (family.countsRowsAlone)
    for (Axis &axis : shape.axes)
      if (axis.knob != Knob::TileQ)
        axis.values.resize(1);
  return shape;
}

/// Whether the phase is legal with the fewest stages of the search.
bool fits(const KernelShape &kernel, const TunedPhase &tuned, const MachineFacts &machine) {
  PhaseConfig least = tuned.phase;
  if (!tuned.stages.empty())
    least.stages = *std::min_element(tuned.stages.begin(), tuned.stages.end());
  return !kernels::brokenRule({kernel, least, machine.target, kernels::familyOf(least, machine.families)});
}

/// The shapes of each family, newer ones first, if a first phase for the search is legal; the family of
/// schedules is included whenever it can read the values.
std::vector<SpaceShape> shapesOf(const spec::Variant &variant, const MachineFacts &machine) {
  const KernelShape kernel = KernelShape::of(variant);
  const kernels::Family &ofSchedules = kernels::familyOfSchedules(machine.target, machine.families);
  const auto families = kernels::familiesOn(machine.target, machine.families);
  std::vector<SpaceShape> shapes;
  for (auto family = families.rbegin(); family != families.rend(); ++family)
    for (const TunedPhases &tuned : (*family)->tuned(kernel))
      if (fits(kernel, tuned.phases.front(), machine) ||
          (*family == &ofSchedules && readsValuesOf(ofSchedules, kernel.tensors)))
        shapes.push_back(shapeOf(tuned));
  return shapes;
}

Result<void> apply(const AxisOverride &change, std::vector<Axis> &planAxes, std::vector<SpaceShape> &shapes) {
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
  for (SpaceShape &shape : shapes)
    for (Axis &axis : shape.axes)
      if (auto done = applyTo(axis, shape.phases); !done)
        return done;
  if (change.name == "shape") {
    std::vector<std::string> names;
    names.reserve(shapes.size());
    for (const SpaceShape &shape : shapes)
      names.push_back(shape.name);
    for (const std::string &name : change.values)
      if (std::find(names.begin(), names.end(), name) == names.end())
        return Error{ErrorCode::Usage, "no shape `" + name + "`", support::didYouMean(name, names)};
    std::erase_if(shapes, [&](const SpaceShape &shape) {
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

Result<Space> makeSpace(const spec::Variant &variant, const MachineFacts &machine,
                        const std::vector<AxisOverride> &overrides) {
  std::vector<Axis> plan = planAxes(variant, machine.target != nullptr);
  std::vector<SpaceShape> shapes;
  if (variant.schedule && !variant.schedule->phases.empty())
    shapes.push_back(
        shapeOf(*variant.schedule, variant, kernels::familyOfSchedules(machine.target, machine.families)));
  else
    shapes = shapesOf(variant, machine);
  for (const AxisOverride &change : overrides)
    if (auto done = apply(change, plan, shapes); !done)
      return done.error();
  return Space(kernels::KernelShape::of(variant), machine.target, machine.cost, plan, std::move(shapes),
               machine.families);
}

} // namespace deft::space
