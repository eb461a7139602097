#include "tools/deftc/compare/CompareText.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A row of partition `asked` whose rounds took these times.
CompareRow rowOf(const std::string &asked, double least, double median, double most) {
  CompareRow row;
  row.spec = "near";
  row.tree = "some tree";
  row.asked = row.partition = asked;
  row.rounds = 5;
  row.leastUs = least;
  row.medianUs = median;
  row.mostUs = most;
  return row;
}

std::string textOf(std::vector<CompareRow> rows) {
  std::ostringstream out;
  printCompare({"cpu", "2 threads", std::move(rows), {"a note"}}, out);
  return out.str();
}

/// The line of a partition.
std::string lineOf(const std::string &text, const std::string &partition) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  near") && line.find(" " + partition) != std::string::npos)
      return line;
  return "none";
}

TEST(CompareTextTest, TheFastestIsHeldAgainstWhatRunTakes) {
  CompareRow chosen = rowOf("auto", 119, 120, 121);
  chosen.isChosen = true;
  chosen.partition = "union";
  const CompareRow fast = rowOf("node", 99, 100, 101);
  EXPECT_THAT(
      textOf({chosen, fast}),
      HasSubstr("some tree on cpu (2 threads), the median of 5 rounds in turn\n"
                "fastest: near, untuned, partition node, 100 us; the choice of `deftc run` (auto: union) "
                "takes 20.0 % longer\n"));
  CompareRow noisy = chosen;
  noisy.leastUs = 100;
  EXPECT_THAT(textOf({noisy, fast}), HasSubstr("20.0 % longer, which may be noise\n"));
  chosen.medianUs = 50;
  EXPECT_THAT(textOf({chosen, fast}), HasSubstr("partition auto: union, 50.0 us; `deftc run` uses it\n"));
  EXPECT_THAT(textOf({fast}), Not(HasSubstr("deftc run")));
  EXPECT_THAT(textOf({fast}), testing::EndsWith("\na note\n"));
}

TEST(CompareTextTest, ARowTellsItsSpreadAndItsShareOfTheBest) {
  CompareRow slow = rowOf("query", 140, 150, 170);
  slow.items = 12345;
  slow.chunkTokens = 512;
  const std::string text = textOf({slow, rowOf("node", 99, 100, 101)});
  EXPECT_THAT(lineOf(text, "query"), HasSubstr(" 512  12,345 "));
  EXPECT_THAT(lineOf(text, "query"), HasSubstr(" 10.0 ")) << "half of 30 in 150";
  EXPECT_THAT(lineOf(text, "query"), testing::EndsWith(" 1.50"));
  EXPECT_THAT(lineOf(text, "node"), testing::EndsWith(" 1.00 *"));
}

TEST(CompareTextTest, EachTreeHasItsOwnRounds) {
  const CompareRow small = rowOf("node", 99, 100, 101);
  CompareRow large = small;
  large.tree = "large tree";
  large.rounds = 3;
  const std::string text = textOf({small, large});
  EXPECT_THAT(text, HasSubstr("some tree on cpu (2 threads), the median of 5 rounds in turn\n"));
  EXPECT_THAT(text, HasSubstr("large tree on cpu (2 threads), the median of 3 rounds in turn\n"));
  EXPECT_EQ(toJson(CompareReport{"cpu", "2 threads", {small, large}, {}})["rounds"], 3);
}

TEST(CompareTextTest, WhatCannotBeRunOrIsWrongIsSaid) {
  CompareRow broken = rowOf("flatten", 0, 0, 0);
  broken.fault = "no room";
  EXPECT_THAT(textOf({broken}), HasSubstr("none of them can be run\n"));
  EXPECT_THAT(lineOf(textOf({broken}), "flatten"), testing::EndsWith("not run: no room"));
  CompareRow wrong = rowOf("node", 99, 100, 101);
  wrong.check.emplace();
  wrong.check->error = 2;
  wrong.check->allowed = 1;
  wrong.check->worstQuery = 3;
  wrong.check->worstHead = 7;
  EXPECT_THAT(lineOf(textOf({wrong, broken}), "node"),
              HasSubstr(" 1.00 *  WRONG: query 3, head 7: relative error 2, allowed 1"));
  wrong.check->error = 0.5;
  EXPECT_THAT(lineOf(textOf({wrong, broken}), "node"), testing::EndsWith(" 1.00 *  right"));
}

TEST(CompareTextTest, JsonHasWhatTextLeavesOut) {
  CompareRow row = rowOf("auto", 1, 2, 3);
  row.partition = "union";
  row.partialSlots = 7;
  const nlohmann::json json = toJson(CompareReport{"cpu", "2 threads", {row}, {}});
  EXPECT_EQ(json["rows"][0]["partial_slots"], 7);
  EXPECT_EQ(json["rows"][0]["asked"], "auto");
  EXPECT_EQ(json["rows"][0]["most_us"], 3);
  EXPECT_EQ(json["rows"][0]["fault"], nullptr);
  EXPECT_EQ(json["rows"][0]["right"], nullptr) << "nobody has checked";
  EXPECT_EQ(json["rows"][0]["rounds"], 5);
}

} // namespace
} // namespace deft::cli
