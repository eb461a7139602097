#include "compiler/package/SpaceJson.h"

#include "compiler/config/ConfigJson.h"

#include <nlohmann/json.hpp>

#include <array>
#include <stdexcept>
#include <utility>

namespace deft::package {
namespace {

using nlohmann::json;
using Member = std::optional<spec::TuneList> spec::PhaseSpec::*;

constexpr std::array<std::pair<const char *, Member>, 4> kLists{{
    {"tile_q", &spec::PhaseSpec::tileQ},
    {"tile_kv", &spec::PhaseSpec::tileKv},
    {"stages", &spec::PhaseSpec::stages},
    {"warps", &spec::PhaseSpec::warps},
}};

json listJson(const spec::TuneList &list) { return {{"values", list.values}, {"tunable", list.tunable}}; }

spec::TuneList listFromJson(const json &object) {
  spec::TuneList list{object.at("values").get<std::vector<int>>(), object.at("tunable").get<bool>(), {}};
  if (list.values.empty())
    throw std::invalid_argument("a list has no values");
  return list;
}

} // namespace

json toJson(const spec::ScheduleSpec &schedule) {
  json object{{"partitions", json::array()}, {"phases", json::array()}};
  for (const spec::Partition partition : schedule.partitions)
    object["partitions"].push_back(config::partitionName(partition));
  if (schedule.chunk)
    object["chunk"] = listJson(*schedule.chunk);
  for (const spec::PhaseSpec &phase : schedule.phases) {
    json phaseJson{{"name", phase.name}};
    if (phase.rowsAbove)
      phaseJson["rows_above"] = *phase.rowsAbove;
    for (const auto &[key, member] : kLists)
      if (phase.*member)
        phaseJson[key] = listJson(*(phase.*member));
    object["phases"].push_back(std::move(phaseJson));
  }
  return object;
}

support::Result<spec::ScheduleSpec> spaceFromJson(const json &object) {
  try {
    spec::ScheduleSpec schedule;
    for (const json &name : object.at("partitions")) {
      const auto partition = config::partitionFromName(name.get<std::string>());
      if (!partition)
        throw std::invalid_argument("unknown partition " + name.dump());
      schedule.partitions.push_back(*partition);
    }
    if (object.contains("chunk"))
      schedule.chunk = listFromJson(object.at("chunk"));
    for (const json &phaseJson : object.at("phases")) {
      spec::PhaseSpec phase;
      phase.name = phaseJson.at("name").get<std::string>();
      if (phaseJson.contains("rows_above"))
        phase.rowsAbove = phaseJson.at("rows_above").get<int>();
      for (const auto &[key, member] : kLists)
        if (phaseJson.contains(key))
          phase.*member = listFromJson(phaseJson.at(key));
      schedule.phases.push_back(std::move(phase));
    }
    return schedule;
  } catch (const std::exception &error) {
    return support::Error{support::ErrorCode::Diagnostics,
                          std::string("the parameter space is malformed: ") + error.what(),
                          {}};
  }
}

} // namespace deft::package
