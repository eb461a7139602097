#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

/// Reads objects that a program wrote: checks every field's name, type and range, with our own messages.
namespace deft::support {

/// Thrown by the functions below and caught by the calling reader in the same file: a Result for each of
/// forty fields would make readers hard to read.
struct WrongField : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool condition, const std::string &message);

/// Parses the document; `what` names it in messages.
nlohmann::json parseDocument(std::string_view text, const std::string &what);

const nlohmann::json &member(const nlohmann::json &json, const char *key);
int integer(const nlohmann::json &json, const char *key, std::int64_t minimum, std::int64_t maximum);
std::string text(const nlohmann::json &json, const char *key);
bool boolean(const nlohmann::json &json, const char *key);
const nlohmann::json &array(const nlohmann::json &json, const char *key, std::size_t maximum);

/// A text that `parse` accepts; it returns an optional.
template <typename Parse> auto word(const nlohmann::json &json, const char *key, Parse parse) {
  const std::string value = text(json, key);
  auto parsed = parse(value);
  if (!parsed)
    throw WrongField("`" + std::string(key) + "` has the unknown value `" + value.substr(0, 64) + "`");
  return *parsed;
}

/// A text that may become part of a kernel's name and of generated source.
std::string identifier(const nlohmann::json &json, const char *key, std::size_t longest);

/// The reason why a text is not JSON, or why a number in it is too large, without the library's prefix:
/// "unexpected `}`, expected string literal".
std::string reasonOf(const nlohmann::json::exception &error);

/// Describes a fault that nlohmann's own functions found: the kind of fault and, for a text that is not JSON,
/// the position and the reason.
std::string faultText(const nlohmann::json::exception &error);

} // namespace deft::support
