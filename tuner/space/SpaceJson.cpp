#include "tuner/space/Space.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/TensorsJson.h"
#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

namespace deft::space {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

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
  const auto found = knobFromName(knob);
  if (!found)
    return bad("no axis `" + knob + "`");
  axis.knob = *found;
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

json toJson(const Space &space) {
  const auto axesFrom = [](const std::vector<Axis> &axes, int begin, int end) {
    json list = json::array();
    for (int i = begin; i < end; ++i)
      list.push_back(toJson(axes[static_cast<std::size_t>(i)]));
    return list;
  };
  json shapes = json::array();
  for (std::size_t s = 0; s < space.shapes().size(); ++s) {
    const SpaceShape &shape = space.shapes()[s];
    json phases = json::array();
    for (const config::PhaseConfig &phase : shape.phases)
      phases.push_back(config::toJson(phase));
    shapes.push_back({{"name", shape.name},
                      {"phases", std::move(phases)},
                      {"axes", axesFrom(shape.axes, 0, static_cast<int>(shape.axes.size()))}});
  }
  const kernels::KernelShape &kernel = space.kernel();
  const bool areAlike = kernel.tensors.areAlike(); // the dtype does not affect legality
  json object = {{"query_heads", kernel.queryHeads},
                 {"kv_heads", kernel.kvHeads},
                 areAlike ? json::array({"head_dim", kernel.tensors.k.dim})
                          : json::array({"tensors", spec::toJson(kernel.tensors)}),
                 {"target", space.target() ? std::string(space.target()->arch) : "cpu"},
                 {"cost", config::toJson(space.cost())},
                 {"axes", axesFrom(space.axes(0), 0, space.planAxisCount())},
                 {"shapes", std::move(shapes)}};
  if (kernel.has.key)
    object["key_hook"] = true;
  if (kernel.tokenParams > 0)
    object["token_params"] = kernel.tokenParams;
  if (kernel.has.valueFactor)
    object["value_factor"] = true;
  return object;
}

Result<Space> spaceFromJson(const json &object) try {
  kernels::KernelShape kernel;
  kernel.queryHeads = object.at("query_heads").get<int>();
  kernel.kvHeads = object.at("kv_heads").get<int>();
  kernel.tensors = object.contains("tensors") ? spec::readTensors(object.at("tensors"))
                                              : spec::Tensors::alike(object.at("head_dim").get<int>());
  kernel.has.key = object.value("key_hook", false);
  kernel.has.valueFactor = object.value("value_factor", false);
  kernel.tokenParams = object.value("token_params", 0);
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
  std::vector<SpaceShape> shapes;
  for (const json &entry : object.at("shapes")) {
    SpaceShape shape;
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
  return Space(kernel, target, *cost, planAxes, std::move(shapes));
} catch (const json::exception &error) {
  return bad(support::faultText(error));
} catch (const support::WrongField &wrong) {
  return bad(wrong.what());
}

} // namespace deft::space
