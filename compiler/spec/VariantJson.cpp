#include "compiler/spec/VariantJson.h"

#include "compiler/spec/Names.h"
#include "compiler/spec/TensorsJson.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace deft::spec {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson numberToJson(double value, ScalarType type) {
  if (type == ScalarType::Bool)
    return value != 0;
  if (type == ScalarType::I32)
    return static_cast<std::int64_t>(value);
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return value;
}

OrderedJson exprToJson(const Expr &expr) {
  OrderedJson json;
  json["op"] = toString(expr.op);
  json["type"] = toString(expr.type);
  if (expr.op == ExprOp::Constant)
    json["value"] = numberToJson(expr.value, expr.type);
  if (expr.op == ExprOp::Builtin)
    json["builtin"] = toString(expr.builtin);
  if (expr.op == ExprOp::Param || expr.op == ExprOp::ParamElement || expr.op == ExprOp::TableElement)
    json["param"] = expr.param;
  if (!expr.operands.empty())
    json["operands"] = expr.operands;
  return json;
}

OrderedJson paramToJson(const Param &param) {
  OrderedJson json;
  json["name"] = param.name;
  json["type"] = toString(param.type);
  json["shape"] = toString(param.shape);
  if (param.shape == Param::Shape::Table)
    json["size"] = param.size;
  if (param.defaultValue)
    json["default_value"] = numberToJson(*param.defaultValue, param.type);
  return json;
}

OrderedJson tuneToJson(const TuneList &list) {
  OrderedJson json;
  json["values"] = list.values;
  json["tunable"] = list.tunable;
  return json;
}

OrderedJson phaseToJson(const PhaseSpec &phase) {
  OrderedJson json;
  json["name"] = phase.name;
  if (phase.rowsAbove)
    json["rows_above"] = *phase.rowsAbove;
  const std::pair<const char *, const std::optional<TuneList> *> lists[] = {{"tile_q", &phase.tileQ},
                                                                            {"tile_kv", &phase.tileKv},
                                                                            {"stages", &phase.stages},
                                                                            {"warps", &phase.warps}};
  for (auto [key, list] : lists)
    if (*list)
      json[key] = tuneToJson(**list);
  return json;
}

OrderedJson scheduleToJson(const ScheduleSpec &schedule) {
  OrderedJson json;
  json["partitions"] = OrderedJson::array();
  for (Partition partition : schedule.partitions)
    json["partitions"].push_back(toString(partition));
  if (schedule.chunk)
    json["chunk"] = tuneToJson(*schedule.chunk);
  json["phases"] = OrderedJson::array();
  for (const PhaseSpec &phase : schedule.phases)
    json["phases"].push_back(phaseToJson(phase));
  return json;
}

OrderedJson selectToJson(const SelectSpec &select) {
  OrderedJson json;
  json["budget"] = tuneToJson(select.budget);
  json["by"] = toString(select.by);
  json["keep_first"] = select.keepFirst;
  json["keep_last"] = select.keepLast;
  return json;
}

} // namespace

OrderedJson toJson(const Variant &v) {
  OrderedJson json;
  json["format"] = "deftc-variant";
  json["version"] = kVariantVersion;
  json["name"] = v.name;
  json["query_heads"] = v.queryHeads;
  json["kv_heads"] = v.kvHeads;
  json["tensors"] = toJson(v.tensors);
  json["with_lse"] = v.withLse;
  json["cache"] = {
      {"paged", v.cache.isPaged()}, {"page_size", v.cache.pageSize}, {"order", toString(v.cache.order)}};
  json["scale"] = v.scale;
  json["normalize"] = toString(v.normalize);
  json["params"] = OrderedJson::array();
  for (const Param &param : v.params)
    json["params"].push_back(paramToJson(param));
  json["exprs"] = OrderedJson::array();
  for (const Expr &expr : v.exprs)
    json["exprs"].push_back(exprToJson(expr));
  if (v.bound != MaskBound::Tree) // came later: texts of specs without it stay as they are
    json["bound"] = toString(v.bound);
#define DEFT_HOOK_TO_JSON(ID, REGION, KEY, ...)                                                              \
  if (v.ID)                                                                                                  \
    json[KEY] = *v.ID;
  DEFT_HOOKS(DEFT_HOOK_TO_JSON, DEFT_HOOK_TO_JSON)
#undef DEFT_HOOK_TO_JSON
  if (v.schedule)
    json["schedule"] = scheduleToJson(*v.schedule);
  if (v.select)
    json["select"] = selectToJson(*v.select);
  return json;
}

} // namespace deft::spec
