#include "tuner/workload/Parameters.h"

#include "compiler/support/NearestName.h"

#include <algorithm>
#include <charconv>

namespace deft::workload {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error wrong(std::string message, std::string hint = "") {
  return Error{ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// "parameter `steps` of workload `few_shot`".
std::string called(const std::string &parameter, const std::string &workload) {
  return "parameter `" + parameter + "` of workload `" + workload + "`";
}

Error unknown(const std::string &parameter, const std::string &workload,
              const std::vector<Parameter> &known) {
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const Parameter &one : known)
    names.push_back(one.name);
  std::string hint = support::didYouMean(parameter, names);
  if (hint.empty()) {
    hint = names.empty() ? "it has none" : "it has ";
    for (std::size_t n = 0; n < names.size(); ++n)
      hint.append(n > 0 ? ", `" : "`").append(names[n]).append("`");
  }
  return wrong("workload `" + workload + "` has no parameter `" + parameter + "`", hint);
}

/// `what` is required: "an integer". `more`: further text about it.
Error notWithin(const std::string &parameter, const std::string &value, const std::string &what, int low,
                int high, const std::string &more = "") {
  return wrong("parameter `" + parameter + "` is `" + value + "`, must be " + what + " from " +
               std::to_string(low) + " to " + std::to_string(high) + more);
}

std::vector<std::string_view> piecesOf(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = text.find(',', begin);
    pieces.push_back(text.substr(begin, comma - begin));
    if (comma == std::string_view::npos)
      return pieces;
    begin = comma + 1;
  }
}

std::optional<int> toInt(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

} // namespace

Result<WorkloadName> parseName(std::string_view text) {
  WorkloadName result;
  const std::size_t colon = text.find(':');
  result.name = text.substr(0, colon);
  if (result.name.empty())
    return wrong("a workload needs a name", "like few_shot:prompt=4000,branches=20");
  if (colon == std::string_view::npos)
    return result;
  for (std::string_view piece : piecesOf(text.substr(colon + 1))) {
    const std::size_t equals = piece.find('=');
    if (equals != std::string_view::npos && equals > 0)
      result.parameters.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
    else if (equals == std::string_view::npos && !piece.empty() && !result.parameters.empty())
      result.parameters.back().second += "," + std::string(piece);
    else
      return wrong("`" + std::string(piece) + "` in workload `" + std::string(text) + "` is not key=value",
                   "like few_shot:prompt=4000,branches=20");
  }
  return result;
}

Result<Parameters> Parameters::make(const std::string &workload, const GivenParameters &given,
                                    const std::vector<Parameter> &known) {
  Parameters result;
  for (const Parameter &parameter : known)
    result.values_.emplace_back(parameter.name, parameter.defaultValue);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto &[name, value] = given[i];
    const auto isName = [&](const auto &own) { return own.first == name; };
    const auto at = std::find_if(result.values_.begin(), result.values_.end(), isName);
    if (at == result.values_.end())
      return unknown(name, workload, known);
    if (std::find_if(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(i), isName) !=
        given.begin() + static_cast<std::ptrdiff_t>(i))
      return wrong(called(name, workload) + " is given twice");
    if (value.empty())
      return wrong(called(name, workload) + " has no value");
    at->second = value;
  }
  return result;
}

std::string Parameters::text(const std::string &name) const {
  for (const auto &[key, value] : values_)
    if (key == name)
      return value;
  return "";
}

int Parameters::integer(const std::string &name, int low, int high) {
  const std::string value = text(name);
  if (const auto number = toInt(value, low, high))
    return *number;
  fail(notWithin(name, value, "an integer", low, high));
  return low;
}

std::vector<int> Parameters::integers(const std::string &name, int low, int high) {
  std::vector<int> numbers;
  const std::string value = text(name);
  for (std::string_view piece : piecesOf(value)) {
    const auto number = toInt(piece, low, high);
    if (!number) {
      fail(notWithin(name, value, "integers", low, high, " with commas between them"));
      return {low};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::string Parameters::choice(const std::string &name, const std::vector<std::string> &choices) {
  std::string value = text(name);
  if (std::find(choices.begin(), choices.end(), value) != choices.end())
    return value;
  std::string all;
  for (const std::string &choice : choices)
    all += (all.empty() ? "`" : ", `") + choice + "`";
  fail(wrong("parameter `" + name + "` is `" + value + "`, must be one of " + all,
             support::didYouMean(value, choices)));
  return choices.front();
}

void Parameters::fail(Error error) {
  if (!error_)
    error_ = std::move(error);
}

} // namespace deft::workload
