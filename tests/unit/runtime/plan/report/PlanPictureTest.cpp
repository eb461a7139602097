#include "compiler/config/DevicePrices.h"
#include "compiler/support/Svg.h"
#include "runtime/plan/report/PlanReport.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <regex>

namespace deft::plan {
namespace {

PlanReport reportOf(const tree::KvTree &tree, const VariantFacts &facts = {4, 2}) {
  auto report = reportPlan(tree, facts, makeConfig(64), config::nearestPrices(config::someGpu()).kernels, 8);
  EXPECT_TRUE(report) << report.error().message;
  return std::move(*report);
}

int count(const std::string &text, const std::string &what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(PlanPictureTest, EveryItemIsAGroupOfItsOwn) {
  const PlanReport report = reportOf(test::levelTree({1, 3, 9}, {300, 100, 40}));
  EXPECT_EQ(count(drawPlan(report), "<g class=\"i\">"), static_cast<int>(report.plan.items.size()));
}

TEST(PlanPictureTest, PartialsAreInTheLegendWhereThereAreSome) {
  const PlanReport direct = reportOf(test::levelTree({1}, {20}));
  ASSERT_EQ(direct.plan.partialSlots, 0);
  EXPECT_EQ(count(drawPlan(direct), "an item that writes partials"), 0);
  const PlanReport merged = reportOf(test::levelTree({1}, {500}));
  ASSERT_GT(merged.plan.partialSlots, 0);
  EXPECT_EQ(count(drawPlan(merged), "an item that writes partials"), 1);
}

TEST(PlanPictureTest, NodesThatNobodyReadsAreLeftOut) {
  tree::KvTree tree = test::levelTree({1, 2}, {30, 10});
  ASSERT_TRUE(tree.addNode(0, 10)); // a branch without a query
  EXPECT_EQ(count(drawPlan(reportOf(tree)), "1 node that no query sees is left out."), 1);
}

TEST(PlanPictureTest, CausalStretchesAreTriangles) {
  EXPECT_EQ(count(drawPlan(reportOf(test::levelTree({1, 3}, {40, 20}))), "<polygon"), 0);
  tree::KvTree tree;
  const int prompt = tree.addNode(-1, 40).value();
  for (int seen = 1; seen <= 40; ++seen)
    ASSERT_TRUE(tree.addQuery(prompt, seen));
  const PlanReport report = reportOf(tree);
  const auto sloped = std::count_if(report.plan.runs.begin(), report.plan.runs.end(),
                                    [](const abi::Run &run) { return run.slope != 0; });
  ASSERT_GT(sloped, 1);
  EXPECT_EQ(count(drawPlan(report), "each from its own query on"), sloped);
}

TEST(PlanPictureTest, WhatAMaskHidesIsHatched) {
  VariantFacts facts{4, 2};
  EXPECT_EQ(count(drawPlan(reportOf(test::levelTree({1, 3}, {40, 20}), facts)), "hidden by the mask"), 0);
  spec::VisibleBounds::Bound window; // kv_pos >= q_pos - 7
  window.at.qPos = 1;
  window.at.rest.constant = -7;
  facts.reach = Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {});
  EXPECT_GT(count(drawPlan(reportOf(test::levelTree({1, 3}, {40, 20}), facts)), "hidden by the mask"), 1);
}

// A mask that no interval says: every other node is hidden.
TEST(PlanPictureTest, WhatOnlyTheMaskItselfTellsIsHatchedToo) {
  PlanReport report = reportOf(test::levelTree({1, 3, 3}, {40, 20, 30}));
  const std::string all = drawPlan(report);
  report.shows = [](const MaskSite &site) { return site.depth % 2 == 0; };
  const std::string some = drawPlan(report);
  EXPECT_EQ(count(all, "fill-opacity=\"0.85\""), 0);
  EXPECT_GE(count(some, "fill-opacity=\"0.85\""), 3) << "one for each node of depth 1";
  EXPECT_EQ(count(some, "hidden by the mask"), 1) << "in the legend";
}

TEST(PlanPictureTest, HundredsOfLevelsStayWithinThePicture) {
  tree::KvTree tree;
  int node = tree.addNode(-1, 2).value();
  for (int level = 1; level < 600; ++level)
    node = tree.addNode(node, 2).value();
  ASSERT_TRUE(tree.addQuery(node));
  const std::string picture = drawPlan(reportOf(tree));
  static const std::regex rect("<rect x=\"([0-9.]+)\" y=\"[0-9.]+\" width=\"([0-9.]+)\"");
  double end = 0;
  for (auto at = std::sregex_iterator(picture.begin(), picture.end(), rect); at != std::sregex_iterator();
       ++at)
    end = std::max(end, std::stod((*at)[1]) + std::stod((*at)[2]));
  EXPECT_GT(end, 1000);
  EXPECT_LE(end, 1280);
}

TEST(PlanPictureTest, LabelsDoNotCoverEachOther) {
  for (const auto &tree : {test::levelTree({1, 3, 9}, {300, 100, 40}), test::levelTree({1, 24}, {2000, 30}),
                           test::levelTree({2, 4, 8, 16}, {16, 16, 16, 16})}) {
    const std::string picture = drawPlan(reportOf(tree));
    struct Box {
      double x, y, width, height;
    };
    std::vector<Box> boxes;
    static const std::regex text(
        "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" font-size=\"([0-9.]+)\" [^>]*fill=\"none\"[^>]*>([^<]*)<");
    for (auto at = std::sregex_iterator(picture.begin(), picture.end(), text); at != std::sregex_iterator();
         ++at) {
      if (at->str().find("rotate") != std::string::npos)
        continue;
      const double size = std::stod((*at)[3]);
      boxes.push_back(
          {std::stod((*at)[1]), std::stod((*at)[2]) - size, support::Svg::widthOf((*at)[4], size), size});
    }
    ASSERT_GT(boxes.size(), 2u);
    for (std::size_t i = 0; i < boxes.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_FALSE(boxes[i].x < boxes[j].x + boxes[j].width && boxes[j].x < boxes[i].x + boxes[i].width &&
                     boxes[i].y + 2 < boxes[j].y + boxes[j].height &&
                     boxes[j].y + 2 < boxes[i].y + boxes[i].height)
            << i << " and " << j;
  }
}

} // namespace
} // namespace deft::plan
