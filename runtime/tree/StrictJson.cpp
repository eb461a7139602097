#include "runtime/tree/StrictJson.h"

#include "compiler/support/JsonFields.h"
#include "compiler/support/NearestName.h"
#include "runtime/tree/TreeError.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace deft::tree {

using nlohmann::json;
using support::Result;

namespace {

std::string lineAndColumn(std::string_view text, std::size_t byte) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    const bool isNewline = text[i] == '\n';
    line += isNewline;
    column = isNewline ? 1 : column + 1;
  }
  return std::to_string(line) + ":" + std::to_string(column);
}

/// Finds the fault of a text, or a repeated key in an object. A parser's callback could do the same, but
/// takes quadratic time over long arrays.
struct Watch : nlohmann::json_sax<json> {
  explicit Watch(std::string_view whole) : text(whole) {}

  std::string_view text;
  std::vector<std::set<std::string>> open;
  std::string repeated;
  std::string fault; ///< empty: no fault

  bool start_object(std::size_t) override {
    open.emplace_back();
    return true;
  }
  bool key(std::string &name) override {
    if (!open.back().insert(name).second)
      repeated = name;
    return true;
  }
  bool end_object() override {
    open.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string &) override { return true; }
  bool string(std::string &) override { return true; }
  bool binary(json::binary_t &) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t byte, const std::string &, const json::exception &error) override {
    const std::string place = lineAndColumn(text, byte), reason = support::reasonOf(error);
    const bool isGrammar = dynamic_cast<const json::parse_error *>(&error) != nullptr;
    fault = isGrammar ? "not valid JSON at " + place + ": " + reason : reason + ", it ends at " + place;
    return false;
  }
};

} // namespace

bool isNestedTooDeep(std::string_view text) {
  constexpr int kMostLevels = 100;
  int level = 0;
  bool isInString = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (isInString && c == '\\')
      ++i;
    else if (c == '"')
      isInString = !isInString;
    else if (!isInString && (c == '[' || c == '{') && ++level > kMostLevels)
      return true;
    else if (!isInString && (c == ']' || c == '}'))
      --level;
  }
  return false;
}

Result<json> parseStrictJson(std::string_view text) {
  if (isNestedTooDeep(text))
    return wrong("it is nested too deep");
  Watch watch(text);
  if (!json::sax_parse(text, &watch))
    return wrong(watch.fault);
  if (!watch.repeated.empty())
    return wrong("key `" + watch.repeated + "` stands twice in one object");
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Result<void> checkKeys(const json &object, const std::string &where,
                       std::initializer_list<const char *> needed,
                       std::initializer_list<const char *> optional) {
  if (!object.is_object())
    return wrong(where + " must be an object, is " + object.type_name());
  std::vector<std::string> known(needed.begin(), needed.end());
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto &[key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return wrong(where + " has an unknown key `" + key + "`", support::didYouMean(key, known));
  for (const char *key : needed)
    if (!object.contains(key))
      return wrong(where + " lacks `" + key + "`");
  return {};
}

Result<int> readInt(const json &value, const std::string &where) {
  if (!value.is_number_integer())
    return wrong(where + " must be an integer, is " +
                 (value.is_number() ? value.dump() : std::string(value.type_name())));
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT32_MAX
                                               : std::in_range<std::int32_t>(value.get<std::int64_t>());
  if (!fits)
    return wrong(where + " is " + value.dump() + ", must fit 32 bits");
  return value.get<int>();
}

Result<std::string> readString(const json &value, const std::string &where) {
  if (!value.is_string())
    return wrong(where + " must be a string, is " + value.type_name());
  return value.get<std::string>();
}

} // namespace deft::tree
