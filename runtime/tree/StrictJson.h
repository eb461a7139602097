#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

/// Reading JSON that people and other programs write: every surprise is an error that names its place.
namespace deft::tree {

/// Whether brackets nest deeper than anything that deftc reads: what copies and prints JSON recurses.
bool isNestedTooDeep(std::string_view text);

/// JSON's own grammar, and no key twice in an object (a parser would keep the last one silently).
support::Result<nlohmann::json> parseStrictJson(std::string_view text);

/// `where` is an object with all keys of `needed`, and beside them at most those of `optional`.
support::Result<void> checkKeys(const nlohmann::json &object, const std::string &where,
                                std::initializer_list<const char *> needed,
                                std::initializer_list<const char *> optional = {});

/// An integer of 32 bits.
support::Result<int> readInt(const nlohmann::json &value, const std::string &where);

support::Result<std::string> readString(const nlohmann::json &value, const std::string &where);

} // namespace deft::tree
