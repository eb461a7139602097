#include "runtime/capture/StepFile.h"

#include "runtime/tree/TreeFile.h"
#include "tests/unit/runtime/capture/Steps.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace deft::capture {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string errorOf(const std::string &text) {
  const auto step = parseStep(text);
  return step ? "" : step.error().message;
}

/// What is wrong with the file of branches() after a change.
std::string errorAfter(const std::function<void(json &)> &change) {
  json file = json::parse(formatStep(test::branches()));
  change(file);
  return errorOf(file.dump());
}

TEST(StepFileTest, WhatIsWrittenIsReadAgain) {
  for (const Step &step : {test::branches(), test::drafted()}) {
    const std::string text = formatStep(step);
    const auto again = parseStep(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(formatStep(*again), text);
    EXPECT_EQ(again->spec[0].text, step.spec[0].text);
    EXPECT_EQ(again->pageTable, step.pageTable);
    EXPECT_EQ(again->tree.queries(), step.tree.queries());
    EXPECT_EQ(again->params[0].value.f32, step.params[0].value.f32);
    EXPECT_EQ(again->run->cache.v.headStride, 64);
    EXPECT_EQ(again->planUs, 12.5);
  }
}

TEST(StepFileTest, PeopleCanReadIt) {
  const std::string text = formatStep(test::branches());
  EXPECT_THAT(text, HasSubstr("\n   \"attention a {\",\n   \"  query_heads = 4;"));
  EXPECT_THAT(text, HasSubstr("\"page_table\": [[0, 7, 2], [2, 3, 1], [8, 4, 1]]"));
  EXPECT_THAT(text, HasSubstr("{\"parent\": 0, \"tokens\": 9, \"location\": 130}"));
}

TEST(StepFileTest, NoTruncationIsTakenForAStep) {
  const std::string text = formatStep(test::drafted());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    ASSERT_NE(errorOf(text.substr(0, length)), "") << length;
}

TEST(StepFileTest, AnyFieldThatIsMissingOrOfAnotherTypeIsNamed) {
  const json file = json::parse(formatStep(test::branches()));
  for (const auto &[key, value] : file.items()) {
    json without = file;
    without.erase(key);
    EXPECT_NE(errorOf(without.dump()), "") << key;
    json other = file;
    other[key] = json::object({{"x", 1}});
    EXPECT_NE(errorOf(other.dump()), "") << key;
    if (value.is_object())
      for (const auto &[inner, ignored] : value.items()) {
        if (key == "params" || inner == "cost" || inner == "order")
          continue;
        json flipped = file;
        flipped[key][inner] = json::array({json::object()});
        EXPECT_NE(errorOf(flipped.dump()), "") << key << "." << inner;
      }
  }
}

TEST(StepFileTest, WrongFieldsAreNamed) {
  EXPECT_EQ(errorAfter([](json &file) { file["version"] = 2; }),
            "captured step of version 2, this program reads version 1 (deftc 0.3.0 wrote it)");
  EXPECT_EQ(errorAfter([](json &file) { file["format"] = "deftc-tree"; }),
            "it is not a captured step: that is an object with \"format\": \"deftc-step\"");
  EXPECT_EQ(errorAfter([](json &file) { file["more"] = 1; }), "it has an unknown key `more`");
  EXPECT_EQ(errorAfter([](json &file) { file["run"]["kind"] = "half"; }),
            "`kind` has the unknown value `half`");
  EXPECT_EQ(errorAfter([](json &file) { file["run"]["k"]["page_stride"] = -1; }),
            "`page_stride` is no stride");
  EXPECT_EQ(errorAfter([](json &file) { file["page_table"][1][0] = 1; }),
            "the stretches of `page_table` are not in order");
  EXPECT_EQ(errorAfter([](json &file) { file["page_table"][1].erase(0); }),
            "a stretch of `page_table` is not [entry, page, count]");
  EXPECT_EQ(errorAfter([](json &file) { file["lengths"] = {46}; }),
            "`lengths` has 1 numbers, the tree has 2 queries");
  EXPECT_EQ(errorAfter([](json &file) { file["tensors"] = "../elsewhere"; }),
            "`tensors` is not the name of a folder beside the file");
  EXPECT_EQ(errorAfter([](json &file) { file["plan_us"] = -1; }), "`plan_us` is no time");
  EXPECT_EQ(errorAfter([](json &file) { file["params"]["width"] = 7; }),
            "parameter `width` is neither f32 nor i32");
  EXPECT_THAT(errorAfter([](json &file) { file["tree"]["nodes"][1].erase("location"); }),
              HasSubstr("`tree`: nodes[1] lacks `location`"));
  EXPECT_THAT(errorAfter([](json &file) { file["config"]["chunk"] = "x"; }), HasSubstr("`config`: "));
  EXPECT_THAT(errorAfter([](json &file) { file["device"]["kind"] = "tpu"; }),
              HasSubstr("device: kind is `tpu`, neither gpu nor cpu"));
}

TEST(StepFileTest, FilesOfOtherKindsSayWhatTheyAre) {
  const module_cache::TestFolder folder;
  const auto read = [&](const std::string &text) {
    module_cache::writeText(folder.path("x.json"), text);
    return readStep(folder.path("x.json"));
  };
  EXPECT_THAT(read("DEFTPKG1").error().message, HasSubstr("is a package, not a captured step"));
  const auto tree = read(tree::formatTree(test::branches().tree));
  EXPECT_THAT(tree.error().message, HasSubstr("x.json`: it is not a captured step"));
  EXPECT_EQ(tree.error().hint, "a tree is run by `deftc run SPEC --tree FILE`");
  EXPECT_THAT(read("attention a {}").error().message, HasSubstr("not valid JSON at 1:1"));
  EXPECT_FALSE(readStep(folder.path("none.json")));
}

} // namespace
} // namespace deft::capture
