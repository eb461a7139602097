#include "compiler/config/ConfigJson.h"

#include "compiler/support/NearestName.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace deft::config {
namespace {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

constexpr std::array kPartitions{
#define DEFT_PARTITION_NAME(ID, NAME, ...) std::pair{spec::Partition::ID, #NAME},
    DEFT_PARTITIONS(DEFT_PARTITION_NAME)
#undef DEFT_PARTITION_NAME
};

constexpr std::array kFamilies{
#define DEFT_FAMILY_NAME(ID, NAME) std::pair{Family::ID, #NAME},
    DEFT_KERNEL_FAMILIES(DEFT_FAMILY_NAME)
#undef DEFT_FAMILY_NAME
};

/// Those that files name.
constexpr std::span kFamiliesOfFiles = std::span(kFamilies).subspan<1>();
static_assert(kFamilies.front().first == Family::Cpu);
/// What files say of a CPU's phases, as they did when there was no other name.
constexpr Family kCpuInFiles = Family::Sm80;

constexpr std::array<std::pair<Order, const char *>, 3> kOrders{{
    {Order::FromRoot, "from_root"},
    {Order::Alternate, "alternate"},
    {Order::Mixed, "mixed"},
}};

constexpr std::array<std::pair<Order, const char *>, 3> kOrderTexts{{
    {Order::FromRoot, ""},
    {Order::Alternate, ", every other item from its leaves"},
    {Order::Mixed, ", tokens of many rows and of few in turn"},
}};

template <class Table> std::string nameIn(const Table &table, decltype(table[0].first) value) {
  for (const auto &[key, name] : table)
    if (key == value)
      return name;
  return {};
}

template <class Table> auto valueIn(const Table &table, std::string_view name) {
  std::optional<std::remove_cvref_t<decltype(table[0].first)>> found;
  for (const auto &[value, candidate] : table)
    if (name == candidate)
      found = value;
  return found;
}

/// Reads the members of one JSON object and remembers the first thing that is wrong.
class Reader {
public:
  Reader(const json &object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object())
      fail("is not an object");
  }

  void read(const char *key, int &out) {
    if (const json *value = take(key)) {
      if (!value->is_number_integer() || *value < std::numeric_limits<int>::min() ||
          *value > std::numeric_limits<int>::max())
        return fail(std::string("`") + key + "` is not an integer of 32 bits");
      out = value->get<int>();
    }
  }
  void read(const char *key, std::string &out) {
    if (const json *value = take(key)) {
      if (!value->is_string())
        return fail(std::string("`") + key + "` is not a string");
      out = value->get<std::string>();
    }
  }
  template <class Table, class Enum> void readEnum(const char *key, const Table &table, Enum &out) {
    std::string name;
    read(key, name);
    if (!error_.message.empty())
      return;
    if (const auto value = valueIn(table, name)) {
      out = *value;
      return;
    }
    std::vector<std::string> names;
    for (const auto &entry : table)
      names.emplace_back(entry.second);
    fail(std::string("`") + key + "` is unknown: `" + name + "`", support::didYouMean(name, names));
  }
  const json *take(const char *key) {
    if (!error_.message.empty())
      return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) {
      fail(std::string("`") + key + "` is missing");
      return nullptr;
    }
    known_.push_back(key);
    return &*found;
  }
  void finish() {
    if (!error_.message.empty())
      return;
    for (const auto &[key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return fail("unknown key `" + key + "`", support::didYouMean(key, known_));
  }
  void fail(const std::string &what, std::string hint = {}) {
    if (error_.message.empty())
      error_ = {ErrorCode::Diagnostics, where_ + ": " + what, std::move(hint)};
  }
  bool ok() const { return error_.message.empty(); }
  const Error &error() const { return error_; }

private:
  const json &object_;
  std::string where_;
  std::vector<std::string> known_;
  Error error_;
};

Result<PhaseConfig> phaseFromJson(const json &object, std::size_t index, DeviceKind device) {
  PhaseConfig phase;
  Reader reader(object, "config phase " + std::to_string(index));
  reader.read("name", phase.name);
  reader.read("rows_above", phase.rowsAbove);
  reader.readEnum("family", kFamiliesOfFiles, phase.family);
  if (device == DeviceKind::Cpu)
    phase.family = Family::Cpu;
  reader.read("tile_q", phase.tileQ);
  reader.read("tile_kv", phase.tileKv);
  reader.read("stages", phase.stages);
  reader.read("warps", phase.warps);
  reader.finish();
  if (!reader.ok())
    return reader.error();
  return phase;
}

} // namespace

std::string partitionName(spec::Partition partition) { return nameIn(kPartitions, partition); }
std::optional<spec::Partition> partitionFromName(std::string_view name) { return valueIn(kPartitions, name); }
std::string orderName(Order order) { return nameIn(kOrders, order); }
std::optional<Order> orderFromName(std::string_view name) { return valueIn(kOrders, name); }
std::string orderText(Order order) { return nameIn(kOrderTexts, order); }
std::string familyName(Family family) { return nameIn(kFamilies, family); }

json toJson(const PhaseConfig &phase) {
  const Family family = phase.family == Family::Cpu ? kCpuInFiles : phase.family;
  return {{"name", phase.name},    {"rows_above", phase.rowsAbove}, {"family", familyName(family)},
          {"tile_q", phase.tileQ}, {"tile_kv", phase.tileKv},       {"stages", phase.stages},
          {"warps", phase.warps}};
}

json toJson(const Config &config) {
  json phases = json::array();
  for (const PhaseConfig &phase : config.phases)
    phases.push_back(toJson(phase));
  json object = {{"partition", partitionName(config.partition)},
                 {"chunk_tokens", config.chunkTokens},
                 {"phases", std::move(phases)}};
  if (config.order != Order::FromRoot) // as files had it before there was another
    object["order"] = orderName(config.order);
  if (config.cost != CostCoefficients())
    object["cost"] = toJson(config.cost);
  return object;
}

bool areEqual(const Config &a, const Config &b) { return toJson(a) == toJson(b); }

Result<Config> configFromJson(const json &object, DeviceKind device) {
  Config config;
  Reader reader(object, "config");
  reader.readEnum("partition", kPartitions, config.partition);
  reader.read("chunk_tokens", config.chunkTokens);
  if (const json *phases = reader.take("phases")) {
    if (!phases->is_array())
      reader.fail("`phases` is not an array");
    for (std::size_t i = 0; reader.ok() && i < phases->size(); ++i) {
      Result<PhaseConfig> phase = phaseFromJson((*phases)[i], i, device);
      if (!phase)
        return std::move(phase).error();
      config.phases.push_back(*phase);
    }
  }
  if (object.is_object() && object.contains("order"))
    reader.readEnum("order", kOrders, config.order);
  if (object.is_object() && object.contains("cost"))
    if (const json *cost = reader.take("cost")) {
      Result<CostCoefficients> prices = costFromJson(*cost);
      if (!prices)
        return std::move(prices).error();
      config.cost = *prices;
    }
  reader.finish();
  if (!reader.ok())
    return reader.error();
  return config;
}

} // namespace deft::config
