#include "compiler/package/SpaceJson.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Limits.h"
#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

#include <array>
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

std::optional<spec::TuneList> listFromJson(const json &object, const char *key) {
  if (!object.contains(key))
    return std::nullopt;
  const json &list = object[key];
  spec::TuneList read;
  read.tunable = support::boolean(list, "tunable");
  for (const json &value : support::array(list, "values", spec::kMaxTuneValues)) {
    support::require(value.is_number_unsigned() &&
                         value.get<std::uint64_t>() <= std::uint64_t{spec::kMaxScheduleNumber},
                     "`" + std::string(key) + "` has the wrong value " + value.dump());
    read.values.push_back(value.get<int>());
  }
  support::require(!read.values.empty(), "`" + std::string(key) + "` has no value");
  return read;
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
  using namespace support;
  try {
    spec::ScheduleSpec schedule;
    for (const json &name : array(object, "partitions", spec::kMaxTuneValues)) {
      const auto partition =
          name.is_string() ? config::partitionFromName(name.get<std::string>()) : std::nullopt;
      if (!partition)
        throw WrongField("unknown partition " + name.dump());
      schedule.partitions.push_back(*partition);
    }
    schedule.chunk = listFromJson(object, "chunk");
    for (const json &phaseJson : array(object, "phases", spec::kMaxPhases)) {
      spec::PhaseSpec phase;
      phase.name = identifier(phaseJson, "name", spec::kMaxNameLength);
      if (phaseJson.contains("rows_above"))
        phase.rowsAbove = integer(phaseJson, "rows_above", -1, spec::kMaxScheduleNumber);
      for (const auto &[key, member] : kLists)
        phase.*member = listFromJson(phaseJson, key);
      schedule.phases.push_back(std::move(phase));
    }
    return schedule;
  } catch (const WrongField &wrong) {
    return Error{
        ErrorCode::Diagnostics, std::string("the parameter space is malformed: ") + wrong.what(), {}};
  }
}

} // namespace deft::package
