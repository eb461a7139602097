#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

/// Reads JSON from people and other programs strictly: anything unexpected is an error that names its place.
namespace deft::tree {

/// Whether brackets nest deeper than in any file of deftc: code that copies and prints JSON recurses.
bool isNestedTooDeep(std::string_view text);

/// Accepts exactly JSON's grammar, without repeated keys (a parser would silently keep the last one).
support::Result<nlohmann::json> parseStrictJson(std::string_view text);

/// Checks that `where` is an object with all keys of `needed` and otherwise only keys of `optional`.
support::Result<void> checkKeys(const nlohmann::json &object, const std::string &where,
                                std::initializer_list<const char *> needed,
                                std::initializer_list<const char *> optional = {});

/// An integer of 32 bits.
support::Result<int> readInt(const nlohmann::json &value, const std::string &where);

support::Result<std::string> readString(const nlohmann::json &value, const std::string &where);

} // namespace deft::tree
