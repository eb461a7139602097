#include "compiler/spec/ExprBuilder.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/spec/TensorsJson.h"
#include "compiler/spec/VariantJson.h"
#include "compiler/support/JsonFields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace deft::spec {
namespace {

using Json = nlohmann::json;

using support::array;
using support::boolean;
using support::integer;
using support::member;
using support::require;
using support::text;
using support::word;

/// Names become parts of kernels' names and of generated text.
std::string name(const Json &json, const char *key) { return support::identifier(json, key, kMaxNameLength); }

double scalar(const Json &value, ScalarType type) {
  double number = 0;
  if (type == ScalarType::Bool) {
    require(value.is_boolean(), "a bool constant is not true or false");
    return value.get<bool>();
  }
  if (type == ScalarType::F32 && value.is_string()) {
    bool negative = value == "-inf";
    require(negative || value == "inf", "a constant is neither a number nor `inf`");
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  require(type == ScalarType::I32 ? value.is_number_integer() : value.is_number(),
          "a constant is not of its type");
  number = value.get<double>();
  double limit = type == ScalarType::I32 ? 2147483648.0 : std::numeric_limits<float>::max();
  require(std::fabs(number) <= limit && !(type == ScalarType::I32 && number == limit),
          "the constant " + value.dump() + " does not fit its type");
  return number;
}

Param readParam(const Json &json) {
  Param param;
  param.name = name(json, "name");
  param.type = word(json, "type", parseScalarType);
  param.shape = word(json, "shape", parseShape);
  require(param.type != ScalarType::Bool, "a parameter is bool");
  if (param.shape == Param::Shape::Table)
    param.size = integer(json, "size", 1, kMaxTable);
  if (json.contains("default_value")) {
    require(param.shape == Param::Shape::Scalar, "an array has a default value");
    param.defaultValue = scalar(json["default_value"], param.type);
  }
  return param;
}

/// The types that an operation may have, given those of its operands; the same rules as the checker's.
bool hasLegalTypes(const Expr &expr, const std::vector<ScalarType> &operands) {
  auto all = [&](ScalarType type) {
    for (ScalarType operand : operands)
      if (operand != type)
        return false;
    return true;
  };
  bool isBool = expr.type == ScalarType::Bool;
  switch (operationOf(expr.op).typing) {
  case Typing::Leaf:
    return true;      // checked with what they name
  case Typing::Table: // its own type is checked with what it names
    return operands[0] != ScalarType::Bool;
  case Typing::ToF32:
    return expr.type == ScalarType::F32 && all(ScalarType::I32);
  case Typing::Choice:
    return operands[0] == ScalarType::Bool && operands[1] == expr.type && operands[2] == expr.type;
  case Typing::Bools:
    return isBool && all(ScalarType::Bool);
  case Typing::Compares:
    return isBool && operands[0] != ScalarType::Bool && operands[0] == operands[1];
  case Typing::Integers:
    return expr.type == ScalarType::I32 && all(ScalarType::I32);
  case Typing::Reals:
    return expr.type == ScalarType::F32 && all(ScalarType::F32);
  case Typing::Numbers:
    return !isBool && all(expr.type);
  }
  return false;
}

Expr readExpr(const Json &json, const Variant &variant) {
  Expr expr;
  expr.op = word(json, "op", parseExprOp);
  expr.type = word(json, "type", parseScalarType);
  std::size_t count = static_cast<std::size_t>(operationOf(expr.op).operands);
  std::vector<ScalarType> types;
  if (count > 0)
    for (const Json &operand : array(json, "operands", count)) {
      require(operand.is_number_unsigned() && operand.get<std::uint64_t>() < variant.exprs.size(),
              "an operand does not come before its user");
      expr.operands.push_back(operand.get<ExprId>());
      types.push_back(variant.exprs[expr.operands.back()].type);
    }
  require(expr.operands.size() == count, "`" + std::string(toString(expr.op)) + "` has too few operands");
  require(hasLegalTypes(expr, types), "`" + std::string(toString(expr.op)) + "` has operands of wrong types");
  if (expr.op == ExprOp::Constant)
    expr.value = scalar(member(json, "value"), expr.type);
  if (expr.op == ExprOp::Builtin) {
    expr.builtin = word(json, "builtin", parseBuiltin);
    require(expr.type == typeOf(expr.builtin), "a name has a wrong type");
  }
  if (expr.op == ExprOp::Param || expr.op == ExprOp::ParamElement || expr.op == ExprOp::TableElement) {
    expr.param = integer(json, "param", 0, static_cast<int>(variant.params.size()) - 1);
    const Param &param = variant.params[static_cast<std::size_t>(expr.param)];
    require(expr.type == param.type && (expr.op == ExprOp::Param) == (param.shape == Param::Shape::Scalar) &&
                (expr.op == ExprOp::TableElement) == (param.shape == Param::Shape::Table),
            "a parameter is read with the wrong type or shape");
  }
  return expr;
}

std::optional<ExprId> readRoot(const Json &json, const char *key, const Variant &variant, ScalarType type,
                               bool (*mayRead)(Builtin)) {
  if (!json.contains(key))
    return std::nullopt;
  auto id = static_cast<ExprId>(integer(json, key, 0, static_cast<std::int64_t>(variant.exprs.size()) - 1));
  require(variant.exprs[id].type == type, "`" + std::string(key) + "` has a wrong type");
  const auto readsOther = [&](const Expr &e) {
    const std::optional<Builtin> name = nameRead(e, variant.params);
    return name && !mayRead(*name);
  };
  require(!reaches(variant.exprs, id, readsOther), "`" + std::string(key) + "` reads a name that it may not");
  return id;
}

TuneList tuneList(const Json &json, const char *key, int multiple, int most) {
  const Json &value = member(json, key);
  TuneList list;
  list.tunable = boolean(value, "tunable");
  for (const Json &number : array(value, "values", kMaxTuneValues)) {
    require(number.is_number_unsigned() && number.get<std::uint64_t>() >= 1 &&
                number.get<std::uint64_t>() <= static_cast<std::uint64_t>(most) &&
                number.get<int>() % multiple == 0,
            "`" + std::string(key) + "` has the wrong value " + number.dump());
    list.values.push_back(number.get<int>());
  }
  require(!list.values.empty(), "`" + std::string(key) + "` has no value");
  return list;
}

/// None where there is no such key.
std::optional<TuneList> readTune(const Json &json, const char *key, int multiple) {
  return json.contains(key) ? std::optional(tuneList(json, key, multiple, kMaxScheduleNumber)) : std::nullopt;
}

ScheduleSpec readSchedule(const Json &json) {
  ScheduleSpec schedule;
  for (const Json &partition : array(json, "partitions", kMaxTuneValues)) {
    const std::optional<Partition> value =
        parsePartition(partition.is_string() ? partition.get<std::string>() : "");
    if (!value)
      throw support::WrongField("unknown partition " + partition.dump());
    schedule.partitions.push_back(*value);
  }
  schedule.chunk = readTune(json, "chunk", kTileStep);
  for (const Json &item : array(json, "phases", kMaxPhases)) {
    PhaseSpec phase;
    phase.name = name(item, "name");
    if (item.contains("rows_above"))
      phase.rowsAbove = integer(item, "rows_above", 1, kMaxScheduleNumber);
    phase.tileQ = readTune(item, "tile_q", kTileStep);
    phase.tileKv = readTune(item, "tile_kv", kTileStep);
    phase.stages = readTune(item, "stages", 1);
    phase.warps = readTune(item, "warps", 1);
    schedule.phases.push_back(std::move(phase));
  }
  return schedule;
}

SelectSpec readSelect(const Json &json) {
  SelectSpec select;
  select.budget = tuneList(json, "budget", 1, kMaxBudget);
  select.by = word(json, "by", parseSelectBy);
  select.keepFirst = integer(json, "keep_first", 0, kMaxBudget);
  select.keepLast = integer(json, "keep_last", 0, kMaxBudget);
  for (const int budget : select.budget.values)
    require(select.keepFirst + select.keepLast <= budget, "`budget` is below `keep_first` + `keep_last`");
  return select;
}

Variant readVariant(const Json &json) {
  require(text(json, "format") == "deftc-variant", "`format` is not deftc-variant");
  int version = integer(json, "version", 1, std::numeric_limits<int>::max());
  require(version == kVariantVersion, "the variant has version " + std::to_string(version) +
                                          ", this deftc reads version " + std::to_string(kVariantVersion));
  Variant v;
  v.name = name(json, "name");
  v.queryHeads = integer(json, "query_heads", 1, kMaxHeads);
  v.kvHeads = integer(json, "kv_heads", 1, kMaxHeads);
  require(v.queryHeads % v.kvHeads == 0, "`query_heads` is not a multiple of `kv_heads`");
  require(v.ratio() <= kMaxRatio,
          "`query_heads` / `kv_heads` is above the limit of " + std::to_string(kMaxRatio));
  v.tensors = readTensors(member(json, "tensors"));
  v.withLse = boolean(json, "with_lse");
  const Json &cache = member(json, "cache");
  const bool isPaged = boolean(cache, "paged");
  v.cache.pageSize = integer(cache, "page_size", isPaged ? 1 : 0, isPaged ? kMaxPageSize : 0);
  v.cache.order = word(cache, "order", parsePageOrder);
  v.scale = scalar(member(json, "scale"), ScalarType::F32);
  require(v.scale > 0 && std::isfinite(v.scale), "`scale` is not positive and finite");
  v.normalize = word(json, "normalize", parseNormalize);
  require(!v.withLse || v.normalize == Normalize::Softmax, "sigmoid has no lse");
  for (const Json &param : array(json, "params", kMaxParams)) {
    Param read = readParam(param);
    require(std::none_of(v.params.begin(), v.params.end(),
                         [&](const Param &own) { return own.name == read.name; }),
            "two parameters are named `" + read.name + "`");
    v.params.push_back(std::move(read));
  }
  for (const Json &expr : array(json, "exprs", kMaxOperations))
    v.exprs.push_back(readExpr(expr, v));
  if (json.contains("bound"))
    v.bound = word(json, "bound", parseMaskBound);
#define DEFT_READ_HOOK(ID, REGION, KEY, TYPE, READS, ...)                                                    \
  v.ID = readRoot(json, KEY, v, ScalarType::TYPE, READS);
  DEFT_HOOKS(DEFT_READ_HOOK, DEFT_READ_HOOK)
#undef DEFT_READ_HOOK
  require(!v.key || !v.tensors.valueInKey, "`key` would change the V that lies in K");
  require(!v.sink || v.normalize == Normalize::Softmax, "sigmoid has no sink");
  if (json.contains("schedule"))
    v.schedule = readSchedule(json["schedule"]);
  if (json.contains("select"))
    v.select = readSelect(json["select"]);
  if (const char *other = v.atOddsWithByteProducts())
    require(!v.tensors.byteProducts, std::string("products are of 8 bits, and there is ") + other);
  require(!v.select || v.bound == MaskBound::Tree, "an attention bound by `path` selects nothing");
  require(!v.readsGivenLists() || v.select->keepFirst + v.select->keepLast == 0,
          "lists by `caller` keep no tokens");
  require(!v.readsGivenLists() || !v.readOfPlace(), "lists by `caller` have no positions of tokens");
  return v;
}

} // namespace

support::Result<Variant> variantFromJson(const nlohmann::json &json) {
  try {
    return readVariant(json);
  } catch (const support::WrongField &wrong) {
    return support::Error{support::ErrorCode::Diagnostics, wrong.what(), {}};
  } catch (const nlohmann::json::exception &error) {
    return support::Error{support::ErrorCode::Diagnostics, support::faultText(error), {}};
  }
}

} // namespace deft::spec
