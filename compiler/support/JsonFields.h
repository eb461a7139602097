#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

/// Reading objects that a program wrote: every field by name, type and range, in our own words.
namespace deft::support {

/// Thrown by the functions below and caught by the reader that calls them, in the same file: a reader of
/// forty fields with a Result at each would hide what it reads.
struct WrongField : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool condition, const std::string &message);

/// The document; `what` names it.
nlohmann::json parseDocument(std::string_view text, const std::string &what);

const nlohmann::json &member(const nlohmann::json &json, const char *key);
int integer(const nlohmann::json &json, const char *key, std::int64_t minimum, std::int64_t maximum);
std::string text(const nlohmann::json &json, const char *key);
bool boolean(const nlohmann::json &json, const char *key);
const nlohmann::json &array(const nlohmann::json &json, const char *key, std::size_t maximum);

/// A text that `parse` knows; it gives an optional.
template <typename Parse> auto word(const nlohmann::json &json, const char *key, Parse parse) {
  const std::string value = text(json, key);
  auto parsed = parse(value);
  if (!parsed)
    throw WrongField("`" + std::string(key) + "` has the unknown value `" + value.substr(0, 64) + "`");
  return *parsed;
}

/// A text that may become part of a kernel's name and of generated text.
std::string identifier(const nlohmann::json &json, const char *key, std::size_t longest);

/// Why a text is no JSON, or a number in it is too large, without the library's frame around it: "unexpected
/// `}`, expected string literal".
std::string reasonOf(const nlohmann::json::exception &error);

/// What is wrong with a document that was read by nlohmann's own means: the kind of fault, and of a text that
/// is no JSON the place and the reason.
std::string faultText(const nlohmann::json::exception &error);

} // namespace deft::support
