#include "runtime/exec/Params.h"

#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"
#include "runtime/exec/Npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error wrong(std::string message, std::string hint = "") {
  return Error{ErrorCode::Usage, std::move(message), std::move(hint)};
}

template <typename T> std::optional<T> parseWhole(const std::string &text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

bool isFloat(const spec::Param &param) { return param.type == spec::ScalarType::F32; }

Result<ParamValue> fromNumber(const spec::Param &param, const std::string &text, int length) {
  ParamValue value;
  if (!isFloat(param)) {
    const auto whole = parseWhole<std::int32_t>(text);
    if (!whole)
      return wrong("parameter `" + param.name + "` is an i32, `" + text + "` is not");
    value.i32.assign(length, *whole);
    return value;
  }
  const auto number = parseWhole<double>(text);
  if (!number || !std::isfinite(static_cast<float>(*number)))
    return wrong("parameter `" + param.name + "` must be a finite f32, `" + text + "` is not");
  value.f32.assign(length, static_cast<float>(*number));
  return value;
}

/// With `length` values; none: with any number.
Result<ParamValue> fromFile(const spec::Param &param, const std::string &path, std::optional<int> length) {
  auto array = readNpyFile(path);
  if (!array)
    return Error{array.error().code, "parameter `" + param.name + "`: " + array.error().message,
                 array.error().hint};
  if ((array->type == NpyArray::Type::F32) != isFloat(param))
    return wrong("parameter `" + param.name + "` is " + (isFloat(param) ? "f32" : "i32") + ", " + path +
                     " holds " + (isFloat(param) ? "i32" : "f32"),
                 isFloat(param) ? "save it with .astype(numpy.float32)"
                                : "save it with .astype(numpy.int32)");
  const std::size_t given = isFloat(param) ? array->f32.size() : array->i32.size();
  if (length && given != static_cast<std::size_t>(*length))
    return wrong("parameter `" + param.name + "` has " + std::to_string(*length) + " values, " + path +
                 " holds " + std::to_string(given));
  if (const auto at = firstNotFinite(array->f32))
    return wrong("parameter `" + param.name + "` must be finite f32s, " + path + " holds " +
                 std::to_string(array->f32[*at]) + " at index " + std::to_string(*at));
  return ParamValue{std::move(array->f32), std::move(array->i32)};
}

Result<ParamValue> valueOf(const spec::Variant &variant, const spec::Param &param, const std::string &text) {
  // A single value is spread over a run's tokens or queries once these are known.
  const bool isSized = param.isSizedByRun();
  const int length = isSized ? 1 : paramLength(variant, param);
  // Only a text that begins like a number is a number: `inf` and `nan` are names of files.
  const bool isNumber = !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (isNumber || !text.ends_with(".npy")) {
    auto value = fromNumber(param, text, length);
    if (!value && !isNumber)
      return wrong("parameter `" + param.name + "` cannot be `" + text + "`",
                   "give a number, or a file that ends in .npy");
    return value;
  }
  return fromFile(param, text, isSized ? std::nullopt : std::optional(length));
}

} // namespace

int paramLength(const spec::Variant &variant, const spec::Param &param) {
  switch (param.shape) {
  case spec::Param::Shape::PerQueryHead:
    return variant.queryHeads;
  case spec::Param::Shape::PerKvHead:
    return variant.kvHeads;
  case spec::Param::Shape::Table:
    return param.size;
  case spec::Param::Shape::PerToken:
  case spec::Param::Shape::PerTokenAndHead:
  case spec::Param::Shape::PerQuery:
    return 0;
  case spec::Param::Shape::Scalar:
    break;
  }
  return 1;
}

std::optional<std::size_t> firstNotFinite(std::span<const float> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return found == values.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - values.begin()));
}

std::string paramTypeName(const spec::Param &param) {
  std::string name = isFloat(param) ? "f32" : "i32";
  if (param.shape == spec::Param::Shape::Scalar)
    return name;
  const bool isTable = param.shape == spec::Param::Shape::Table;
  return name + "[" + (isTable ? std::to_string(param.size) : toString(param.shape)) + "]";
}

Result<std::size_t> paramIndex(const spec::Variant &variant, const std::string &name) {
  std::vector<std::string> names;
  for (const spec::Param &param : variant.params)
    names.push_back(param.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return wrong(variant.called() + " has no parameter `" + name + "`",
                 names.empty() ? "it has no parameters" : support::didYouMean(name, names));
  return static_cast<std::size_t>(found - names.begin());
}

Result<std::vector<ParamValue>> bindKnownParams(const spec::Variant &variant,
                                                const std::vector<std::string> &assignments) {
  std::vector<std::optional<ParamValue>> bound(variant.params.size());
  for (const std::string &assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos)
      return wrong("`" + assignment + "` gives no value", "write NAME=VALUE or NAME=FILE.npy");
    const std::string name = assignment.substr(0, equals);
    const auto index = paramIndex(variant, name);
    if (!index)
      return index.error();
    if (bound[*index])
      return wrong("parameter `" + name + "` is given twice");
    auto value = valueOf(variant, variant.params[*index], assignment.substr(equals + 1));
    if (!value)
      return value.error();
    bound[*index] = std::move(*value);
  }

  std::vector<ParamValue> values;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const spec::Param &param = variant.params[i];
    if (!bound[i] && param.defaultValue) {
      bound[i].emplace();
      if (isFloat(param))
        bound[i]->f32 = {static_cast<float>(*param.defaultValue)};
      else
        bound[i]->i32 = {static_cast<std::int32_t>(*param.defaultValue)};
    }
    values.push_back(bound[i] ? std::move(*bound[i]) : ParamValue{});
  }
  return values;
}

Result<std::vector<ParamValue>> bindParams(const spec::Variant &variant,
                                           const std::vector<std::string> &assignments) {
  auto values = bindKnownParams(variant, assignments);
  if (!values)
    return values;
  for (std::size_t i = 0; i < values->size(); ++i) {
    const spec::Param &param = variant.params[i];
    if ((*values)[i].f32.empty() && (*values)[i].i32.empty() && !param.isSizedByRun()) {
      const bool isScalar = param.shape == spec::Param::Shape::Scalar;
      return wrong("parameter `" + param.name + "` (" + paramTypeName(param) + ") needs a value",
                   isScalar ? "give it one, on the command line with --param " + param.name + "=VALUE"
                            : "give it " + std::to_string(paramLength(variant, param)) +
                                  " values, on the command line with --param " + param.name +
                                  "=FILE.npy, or =VALUE for all heads alike");
    }
  }
  return values;
}

} // namespace deft::exec
