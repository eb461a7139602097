#include "compiler/support/JsonFields.h"

#include <algorithm>

namespace deft::support {

using Json = nlohmann::json;

namespace {

constexpr int kNumberTooLarge = 406;

} // namespace

void require(bool condition, const std::string &message) {
  if (!condition)
    throw WrongField(message);
}

Json parseDocument(std::string_view text, const std::string &what) {
  try {
    return Json::parse(text);
  } catch (const Json::exception &error) {
    throw WrongField(what + ": " + faultText(error));
  }
}

const Json &member(const Json &json, const char *key) {
  require(json.is_object(), "an object is expected where `" + std::string(key) + "` is read");
  const auto found = json.find(key);
  require(found != json.end(), "`" + std::string(key) + "` is missing");
  return *found;
}

int integer(const Json &json, const char *key, std::int64_t minimum, std::int64_t maximum) {
  const Json &value = member(json, key);
  require(value.is_number_integer(), "`" + std::string(key) + "` is not an integer");
  const bool tooLarge =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(maximum);
  require(!tooLarge && value.get<std::int64_t>() >= minimum && value.get<std::int64_t>() <= maximum,
          "`" + std::string(key) + "` = " + value.dump() + " is not between " + std::to_string(minimum) +
              " and " + std::to_string(maximum));
  return static_cast<int>(value.get<std::int64_t>());
}

std::string text(const Json &json, const char *key) {
  const Json &value = member(json, key);
  require(value.is_string(), "`" + std::string(key) + "` is not a string");
  return value.get<std::string>();
}

bool boolean(const Json &json, const char *key) {
  const Json &value = member(json, key);
  require(value.is_boolean(), "`" + std::string(key) + "` is not true or false");
  return value.get<bool>();
}

const Json &array(const Json &json, const char *key, std::size_t maximum) {
  const Json &value = member(json, key);
  require(value.is_array(), "`" + std::string(key) + "` is not a list");
  require(value.size() <= maximum, "`" + std::string(key) + "` has " + std::to_string(value.size()) +
                                       " elements, the limit is " + std::to_string(maximum));
  return value;
}

std::string identifier(const Json &json, const char *key, std::size_t longest) {
  std::string value = text(json, key);
  bool ok = !value.empty() && value.size() <= longest && !(value[0] >= '0' && value[0] <= '9');
  for (const char c : value)
    ok &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  require(ok, "`" + std::string(key) + "` is not a name");
  return value;
}

/// Of "[json.exception.parse_error.101] parse error at line 1, column 8: syntax error while parsing object
/// key - unexpected '}'; expected string literal" it is what follows the dash. What was read last is left
/// out: it may be megabytes of a string, and places say as much.
std::string reasonOf(const Json::exception &error) {
  std::string text = error.what();
  if (error.id == kNumberTooLarge) // ... number overflow parsing '1e999'
    return "a number is too large";
  const std::size_t dash = text.find(" - ");
  if (dash == std::string::npos)
    return "it is not understood";
  const bool isBeforeKey = text.find("object key") < dash;
  text = text.substr(dash + 3);
  const std::size_t lastRead = text.find("; last read: ");
  text = text.substr(0, lastRead);
  if (isBeforeKey && lastRead != std::string::npos)
    text += "; expected string literal";
  std::replace(text.begin(), text.end(), '\'', '`');
  std::replace(text.begin(), text.end(), ';', ',');
  return text;
}

std::string faultText(const Json::exception &error) {
  if (const auto *parse = dynamic_cast<const Json::parse_error *>(&error))
    return "it is not valid JSON, at byte " + std::to_string(parse->byte) + ": " + reasonOf(error);
  if (dynamic_cast<const Json::type_error *>(&error))
    return "a value in it is of a wrong type";
  return error.id == kNumberTooLarge ? "a number in it is too large" : "a key or an element of it is missing";
}

} // namespace deft::support
