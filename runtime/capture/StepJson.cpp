#include "runtime/capture/StepJson.h"

#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace deft::capture {

using nlohmann::json;
using nlohmann::ordered_json;
using support::array;
using support::boolean;
using support::integer;
using support::member;
using support::require;
using support::text;

namespace {

constexpr std::int64_t kMostTokens = tree::KvTree::kMaxTokens;
constexpr std::size_t kMostRows = std::size_t{1} << 24;
constexpr int kMostDrafts = 256; // of a request, as <deft/c/paged_batch.h> has it

constexpr std::array<std::pair<Moment, const char *>, 3> kMoments{
    {{Moment::Run, "run"}, {Moment::Upload, "upload"}, {Moment::Call, "call"}}};
constexpr std::array<std::pair<RunKind, const char *>, 3> kKinds{
    {{RunKind::Full, "full"}, {RunKind::Selecting, "selecting"}, {RunKind::Sparse, "sparse"}}};

template <typename Table, typename Value> std::string nameIn(const Table &table, Value value) {
  for (const auto &[one, name] : table)
    if (one == value)
      return name;
  return {};
}

template <typename Table> auto valueIn(const Table &table, const json &object, const char *key) {
  using Value = std::remove_cvref_t<decltype(table[0].first)>;
  return support::word(object, key, [&](const std::string &word) -> std::optional<Value> {
    for (const auto &[one, name] : table)
      if (word == name)
        return one;
    return std::nullopt;
  });
}

void checkKeys(const json &object, const char *where, std::initializer_list<const char *> known) {
  require(object.is_object(), "`" + std::string(where) + "` is not an object");
  for (const auto &[key, value] : object.items())
    require(std::find(known.begin(), known.end(), key) != known.end(),
            "`" + std::string(where) + "` has an unknown key `" + key.substr(0, 64) + "`");
}

/// Elements between two places of a tensor.
long long strideOf(const json &object, const char *key) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  const json &value = member(object, key);
  require(value.is_number_integer() && value.is_number_unsigned() && value.get<std::uint64_t>() <= kMost,
          "`" + std::string(key) + "` is no stride");
  return value.get<long long>();
}

ordered_json toJson(const abi::CacheLayout &layout) {
  return {{"page_stride", layout.pageStride},
          {"token_stride", layout.tokenStride},
          {"head_stride", layout.headStride}};
}

abi::CacheLayout layoutOf(const json &object, const char *key) {
  const json &layout = member(object, key);
  checkKeys(layout, key, {"page_stride", "token_stride", "head_stride"});
  return {strideOf(layout, "page_stride"), strideOf(layout, "token_stride"), strideOf(layout, "head_stride")};
}

} // namespace

std::string momentName(Moment moment) { return nameIn(kMoments, moment); }
Moment momentOf(const json &file) { return valueIn(kMoments, file, "written"); }

ordered_json toJson(const RunFacts &run) {
  return {{"kind", nameIn(kKinds, run.kind)},
          {"in_graph", run.isInGraph},
          {"lse", run.hasLse},
          {"budget", run.budget},
          {"q_stride", run.qStride},
          {"out_stride", run.outStride},
          {"k", toJson(run.cache.k)},
          {"v", toJson(run.cache.v)}};
}

RunFacts runOf(const json &object) {
  checkKeys(object, "run", {"kind", "in_graph", "lse", "budget", "q_stride", "out_stride", "k", "v"});
  RunFacts run;
  run.kind = valueIn(kKinds, object, "kind");
  run.isInGraph = boolean(object, "in_graph");
  run.hasLse = boolean(object, "lse");
  run.budget = integer(object, "budget", 0, kMostTokens);
  run.qStride = strideOf(object, "q_stride");
  run.outStride = strideOf(object, "out_stride");
  run.cache = {layoutOf(object, "k"), layoutOf(object, "v")};
  return run;
}

ordered_json toJson(const PlanFacts &plan) {
  return {{"invariant", plan.isInvariant},
          {"workers", plan.workers},
          {"items", plan.items},
          {"partials", plan.partials},
          {"tokens_read", plan.tokensRead}};
}

PlanFacts planOf(const json &object) {
  checkKeys(object, "plan", {"invariant", "workers", "items", "partials", "tokens_read"});
  constexpr int kMost = std::numeric_limits<int>::max();
  PlanFacts plan;
  plan.isInvariant = boolean(object, "invariant");
  plan.workers = integer(object, "workers", 1, 1 << 20);
  plan.items = integer(object, "items", 0, kMost);
  plan.partials = integer(object, "partials", 0, kMost);
  plan.tokensRead = strideOf(object, "tokens_read");
  return plan;
}

ordered_json toJson(const ConfigReason &reason) {
  return {{"rule", reason.rule}, {"class", reason.treeClass}, {"why", reason.why}, {"file", reason.file}};
}

ConfigReason reasonOf(const json &object) {
  checkKeys(object, "selection", {"rule", "class", "why", "file"});
  return {text(object, "rule"), text(object, "class"), text(object, "why"), text(object, "file")};
}

ordered_json toJson(const Drafts &drafts) {
  ordered_json object = {{"request", drafts.request.request},
                         {"first_query", drafts.request.firstQuery},
                         {"count", drafts.request.count},
                         {"length", drafts.request.length},
                         {"location", drafts.request.location},
                         {"gained", drafts.gained},
                         {"sees", drafts.sees}};
  if (!drafts.depths.empty())
    object["depths"] = drafts.depths;
  return object;
}

Drafts draftsOf(const json &object) {
  checkKeys(object, "drafts",
            {"request", "first_query", "count", "length", "location", "gained", "sees", "depths"});
  Drafts drafts;
  drafts.request.request = integer(object, "request", 0, tree::KvTree::kMaxQueries);
  drafts.request.firstQuery = integer(object, "first_query", 0, tree::KvTree::kMaxQueries);
  const int count = drafts.request.count = integer(object, "count", 1, kMostDrafts);
  drafts.request.length = integer(object, "length", 0, kMostTokens);
  drafts.request.location = integer(object, "location", 0, kMostTokens);
  drafts.gained = integer(object, "gained", 0, kMostTokens);
  for (const json &row : array(object, "sees", kMostDrafts))
    drafts.sees.push_back(integersOf(row, "sees", 0, count - 1));
  require(drafts.sees.empty() || drafts.sees.size() == static_cast<std::size_t>(count),
          "`sees` has " + std::to_string(drafts.sees.size()) + " rows, the request has " +
              std::to_string(count) + " drafts");
  if (object.contains("depths")) {
    drafts.depths = integersOf(object["depths"], "depths", 0, kMostDrafts);
    require(drafts.depths.size() == static_cast<std::size_t>(count),
            "`depths` has " + std::to_string(drafts.depths.size()) + " numbers, the request has " +
                std::to_string(count) + " drafts");
  }
  return drafts;
}

json toJson(const std::vector<NamedParam> &params) {
  json object = json::object();
  for (const NamedParam &param : params) {
    json list = param.value.i32;
    for (const float number : param.value.f32) // JSON has no infinity, which only a default can be
      list.push_back(std::isinf(number) ? json(number > 0 ? "inf" : "-inf") : json(number));
    object[param.name] = json::object({{param.value.f32.empty() ? "i32" : "f32", std::move(list)}});
  }
  return object;
}

std::vector<NamedParam> paramsOf(const json &object) {
  require(object.is_object(), "`params` is not an object");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<NamedParam> params;
  for (const auto &[name, typed] : object.items()) {
    const std::string what = "parameter `" + name.substr(0, 64) + "`";
    require(typed.is_object() && typed.size() == 1 && (typed.contains("f32") || typed.contains("i32")),
            what + " is neither f32 nor i32");
    NamedParam param{name, {}};
    if (typed.contains("i32"))
      param.value.i32 = integersOf(typed["i32"], name.c_str(), std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max());
    else
      for (const json &one : array(typed, "f32", kMostRows * 64)) {
        const bool isInfinite = one == "inf" || one == "-inf";
        require(isInfinite || (one.is_number() && std::isfinite(one.get<float>())),
                what + " has a value that is no finite f32");
        param.value.f32.push_back(!isInfinite ? one.get<float>() : one == "inf" ? kInfinity : -kInfinity);
      }
    require(exec::countOf(param.value) > 0, what + " has no value");
    params.push_back(std::move(param));
  }
  return params;
}

std::vector<PageStretch> pageTableOf(const json &list) {
  require(list.is_array(), "`page_table` is not a list");
  std::vector<PageStretch> table;
  std::int64_t end = 0;
  for (const json &one : list) {
    require(one.is_array() && one.size() == 3, "a stretch of `page_table` is not [entry, page, count]");
    const std::vector<int> numbers = integersOf(one, "page_table", 0, kMostTokens);
    const PageStretch stretch{numbers[0], numbers[1], numbers[2]};
    require(stretch.count > 0 && stretch.entry >= end, "the stretches of `page_table` are not in order");
    end = std::int64_t{stretch.entry} + stretch.count;
    require(end <= kMostTokens && std::int64_t{stretch.page} + stretch.count <= kMostTokens,
            "a stretch of `page_table` ends too far behind");
    table.push_back(stretch);
  }
  return table;
}

std::vector<int> integersOf(const json &list, const char *what, std::int64_t least, std::int64_t most) {
  require(list.is_array(), "`" + std::string(what) + "` is not a list");
  std::vector<int> values;
  values.reserve(list.size());
  for (const json &one : list) {
    const bool fits =
        one.is_number_integer() &&
        (!one.is_number_unsigned() ||
         one.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<int>::max()));
    require(fits && one.get<std::int64_t>() >= least && one.get<std::int64_t>() <= most,
            "`" + std::string(what) + "` has " + one.dump().substr(0, 32) + ", not an integer between " +
                std::to_string(least) + " and " + std::to_string(most));
    values.push_back(one.get<int>());
  }
  return values;
}

} // namespace deft::capture
