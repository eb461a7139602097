#include "runtime/plan/report/PlanPage.h"

#include "tests/unit/runtime/plan/report/ReportTesting.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <array>

namespace deft::plan {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

json dataIn(const std::string &page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

int count(const std::string &text, const std::string &what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

PlanReport someReport() {
  PlanReport report = reportOf(test::levelTree({1, 3}, {40, 20}));
  report.treeName = "a tree";
  report.variantName = "mine";
  return report;
}

TEST(PlanPageTest, OnePlanIsAPageOfItsOwn) {
  const PlanReport report = someReport();
  const std::string page = planPage(std::array{PagePlan{.report = &report, .why = "a test"}});
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("<title>Plan of a tree for mine</title>"));
  EXPECT_THAT(page, HasSubstr("price model, not a measurement"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  const json data = dataIn(page);
  ASSERT_EQ(data.at("plans").size(), 1u);
  EXPECT_EQ(data.at("plans")[0].at("why"), "a test");
  EXPECT_EQ(data.at("plans")[0].at("label"), "union");
}

TEST(PlanPageTest, NothingIsLoadedFromElsewhere) {
  const PlanReport report = someReport();
  const std::string page = planPage(std::array{PagePlan{.report = &report}});
  for (const char *part : {"http:", "https:", "//cdn", "@import", "src=", "url("})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(PlanPageTest, TwoPlansStandBesideEachOther) {
  const PlanReport report = someReport();
  const std::string page = planPage(std::array{
      PagePlan{.report = &report},
      PagePlan{.report = &report, .label = "other", .facts = {{"measured", "12.3 µs", "median of 20"}}}});
  EXPECT_THAT(page, HasSubstr("<title>Plans of a tree for mine</title>"));
  const json data = dataIn(page);
  ASSERT_EQ(data.at("plans").size(), 2u);
  EXPECT_EQ(data.at("plans")[1].at("label"), "other");
  EXPECT_EQ(data.at("plans")[1].at("facts"), json::parse(R"([["measured", "12.3 µs", "median of 20"]])"));
}

TEST(PlanPageTest, NamesOfStrangersEndNoScript) {
  PlanReport report = someReport();
  const std::string name = "</script><script>alert(1)</script><!-- \"q\" & 'x' \xE6\xA0\x91 {{data}} \u2028";
  report.nodeNames = {name, "bad \xff bytes"};
  report.treeName = name;
  const std::string page = planPage(std::array{PagePlan{.report = &report}});
  EXPECT_EQ(count(page, "</script>"), 2) << "the data's and the scripts' own";
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  const json names = dataIn(page).at("plans")[0].at("nodes").at("names");
  EXPECT_EQ(names.at("0"), name);
  EXPECT_EQ(names.at("1"), "bad \xEF\xBF\xBD bytes");
  EXPECT_THAT(planPage(std::array{PagePlan{.report = &report}}, "<b>\"&"),
              HasSubstr("<title>&lt;b&gt;&quot;&amp;</title>"));
}

TEST(PlanPageTest, ATreeOfAThousandNodesStaysSmall) {
  const PlanReport report =
      reportOf(test::levelTree({1, 10, 100, 1000}, {2000, 200, 60, 20}), {4, 8}, makeConfig(128), 132);
  EXPECT_LT(planPage(std::array{PagePlan{.report = &report}}).size(), 1'000'000u);
}

TEST(PlanPageTest, FilesAreKnownByName) {
  EXPECT_THAT(std::string(pageFile("page.js")), StartsWith("\"use strict\";"));
  EXPECT_THAT(std::string(pageFile("page.css")), HasSubstr("data-theme=\"dark\""));
  EXPECT_TRUE(pageFile("page.png").empty());
}

} // namespace
} // namespace deft::plan
