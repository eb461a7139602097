#include "compiler/support/JsonFields.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

namespace deft::support {
namespace {

using nlohmann::json;

std::string faultOf(const std::function<void()> &read) {
  try {
    read();
  } catch (const WrongField &wrong) {
    return wrong.what();
  }
  return "none";
}

TEST(JsonFieldsTest, FieldsAreReadByTypeAndRange) {
  const json object = {{"n", 7}, {"t", "text"}, {"b", true}, {"l", {1, 2}}, {"f", 1.5}, {"big", 1ull << 63}};
  EXPECT_EQ(integer(object, "n", 7, 7), 7);
  EXPECT_EQ(text(object, "t"), "text");
  EXPECT_TRUE(boolean(object, "b"));
  EXPECT_EQ(array(object, "l", 2).size(), 2u);
  EXPECT_EQ(identifier(object, "t", 4), "text");

  EXPECT_EQ(faultOf([&] { integer(object, "n", 8, 9); }), "`n` = 7 is not between 8 and 9");
  EXPECT_EQ(faultOf([&] { integer(object, "big", 0, 9); }),
            "`big` = 9223372036854775808 is not between 0 and 9");
  EXPECT_EQ(faultOf([&] { integer(object, "f", 0, 9); }), "`f` is not an integer");
  EXPECT_EQ(faultOf([&] { text(object, "n"); }), "`n` is not a string");
  EXPECT_EQ(faultOf([&] { boolean(object, "n"); }), "`n` is not true or false");
  EXPECT_EQ(faultOf([&] { array(object, "l", 1); }), "`l` has 2 elements, the limit is 1");
  EXPECT_EQ(faultOf([&] { member(object, "gone"); }), "`gone` is missing");
  EXPECT_EQ(faultOf([&] { member(json(7), "n"); }), "an object is expected where `n` is read");
  EXPECT_EQ(faultOf([&] { identifier(object, "t", 3); }), "`t` is not a name");
  EXPECT_EQ(faultOf([&] { identifier({{"t", "2x"}}, "t", 9); }), "`t` is not a name");
  EXPECT_EQ(faultOf([&] { word(object, "t", [](const std::string &) { return std::optional<int>(); }); }),
            "`t` has the unknown value `text`");
}

TEST(JsonFieldsTest, FaultsAreInOurWords) {
  EXPECT_EQ(faultOf([] { parseDocument("{\"a\": }", "the file"); }),
            "the file: it is not valid JSON, at byte 7: unexpected `}`, expected `[`, `{`, or a literal");
  EXPECT_EQ(faultOf([] { parseDocument("1e999", "the file"); }), "the file: a number in it is too large");
  const auto textOf = [](const std::function<void()> &read) {
    try {
      read();
    } catch (const json::exception &error) {
      return faultText(error);
    }
    return std::string("none");
  };
  const json object = {{"a", 1}};
  EXPECT_EQ(textOf([&] { (void)object.at("b"); }), "a key or an element of it is missing");
  EXPECT_EQ(textOf([&] { (void)object.at("a").get<std::string>(); }), "a value in it is of a wrong type");
}

TEST(JsonFieldsTest, WhyATextIsNoJsonIsSaidWithoutTheLibrarysFrame) {
  const auto reason = [](const std::string &text) {
    try {
      const json ignored = json::parse(text);
    } catch (const json::exception &error) {
      return reasonOf(error);
    }
    return std::string("none");
  };
  EXPECT_EQ(reason("[1, 2"), "unexpected end of input, expected `]`");
  EXPECT_EQ(reason("{\"a\": 1,}"), "unexpected `}`, expected string literal");
  EXPECT_EQ(reason("{a: 1}"), "invalid literal, expected string literal");
  EXPECT_EQ(reason("[NaN]"), "invalid literal");
  EXPECT_EQ(reason("[1.]"), "invalid number, expected digit after `.`");
  EXPECT_EQ(reason("[\"" + std::string(100000, 'x')), "invalid string: missing closing quote");
  EXPECT_EQ(reason("[\"; last read: - \n\"]"),
            "invalid string: control character U+000A (LF) must be escaped to \\u000A or \\n");
  EXPECT_EQ(reason("1e999"), "a number is too large");
}

} // namespace
} // namespace deft::support
