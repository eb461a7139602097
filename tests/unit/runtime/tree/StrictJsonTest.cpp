#include "runtime/tree/StrictJson.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::tree {
namespace {

using nlohmann::json;

std::string messageOf(std::string_view text) {
  const auto parsed = parseStrictJson(text);
  return parsed ? "none" : parsed.error().message;
}

TEST(StrictJsonTest, ReadsWhatIsJson) {
  EXPECT_EQ(parseStrictJson(R"({"a": [1, "b", null]})").value(), json({{"a", {1, "b", nullptr}}}));
}

TEST(StrictJsonTest, WhatIsNoJsonIsNamedByLineAndColumn) {
  EXPECT_EQ(messageOf("{\n  \"a\": 1,\n  x\n}"),
            "not valid JSON at 3:3: invalid literal, expected string literal");
  EXPECT_EQ(messageOf(""), "not valid JSON at 1:1: unexpected end of input, expected `[`, `{`, or a literal");
  EXPECT_EQ(messageOf("{\"a\": [1 2]}"), "not valid JSON at 1:10: unexpected number literal, expected `]`");
  EXPECT_EQ(messageOf("{\"a\": 1,}"), "not valid JSON at 1:9: unexpected `}`, expected string literal");
}

TEST(StrictJsonTest, AKeyThatStandsTwiceInOneObjectIsAnError) {
  EXPECT_EQ(messageOf(R"({"a": {"b": 1, "c": 2, "b": 3}})"), "key `b` stands twice in one object");
  EXPECT_EQ(messageOf(R"([{"b": 1}, {"b": 2}, {"c": {"b": 3}}])"), "none");
}

TEST(StrictJsonTest, NumbersBeyondAllTypesAreErrors) {
  EXPECT_EQ(messageOf("[1e999]"), "a number is too large, it ends at 1:6");
}

TEST(StrictJsonTest, BracketsNestAHundredDeepAndThoseOfStringsDoNotCount) {
  EXPECT_EQ(messageOf(std::string(100, '[') + std::string(100, ']')), "none");
  EXPECT_EQ(messageOf(std::string(101, '[') + std::string(101, ']')), "it is nested too deep");
  EXPECT_FALSE(isNestedTooDeep('"' + std::string(200, '{') + "\\\"" + std::string(200, '[') + '"'));
  EXPECT_FALSE(isNestedTooDeep("[" + std::string(500, ' ') + "]" + std::string(50, '[')));
}

TEST(StrictJsonTest, KeysAreThoseThatAreNeededOrMayBe) {
  const json object = {{"parent", 1}, {"tokens", 2}};
  EXPECT_TRUE(checkKeys(object, "node 3", {"parent"}, {"tokens"}));
  EXPECT_EQ(checkKeys(object, "node 3", {"parent", "tokens", "name"}).error().message, "node 3 lacks `name`");
  const auto unknown = checkKeys(object, "node 3", {"parent", "token"});
  EXPECT_EQ(unknown.error().message, "node 3 has an unknown key `tokens`");
  EXPECT_NE(unknown.error().hint.find("`token`"), std::string::npos) << unknown.error().hint;
  EXPECT_EQ(checkKeys(json::array(), "node 3", {}).error().message, "node 3 must be an object, is array");
}

TEST(StrictJsonTest, IntegersHaveThirtyTwoBits) {
  EXPECT_EQ(readInt(2147483647, "`tokens`").value(), 2147483647);
  EXPECT_EQ(readInt(-2147483648LL, "`tokens`").value(), -2147483647 - 1);
  EXPECT_EQ(readInt(2147483648LL, "`tokens`").error().message, "`tokens` is 2147483648, must fit 32 bits");
  EXPECT_EQ(readInt(18446744073709551615ULL, "`tokens`").error().message,
            "`tokens` is 18446744073709551615, must fit 32 bits");
  EXPECT_EQ(readInt(1.5, "`tokens`").error().message, "`tokens` must be an integer, is 1.5");
  EXPECT_EQ(readInt("7", "`tokens`").error().message, "`tokens` must be an integer, is string");
}

TEST(StrictJsonTest, StringsAreStrings) {
  EXPECT_EQ(readString("a", "`name`").value(), "a");
  EXPECT_EQ(readString(7, "`name`").error().message, "`name` must be a string, is number");
}

} // namespace
} // namespace deft::tree
