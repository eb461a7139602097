#include "runtime/plan/report/HiddenParts.h"

#include "tests/unit/runtime/plan/report/ReportTesting.h"

namespace deft::plan {
namespace {

/// A root of 40 tokens with three branches of 20, in one item.
PlanReport unionReport(const VariantFacts &facts = {4, 2}) {
  config::Config config = makeConfig(0);
  config.partition = spec::Partition::Union;
  return reportOf(test::levelTree({1, 3}, {40, 20}), facts, config);
}

TEST(HiddenPartsTest, WithoutAMaskNothingIsHidden) { EXPECT_TRUE(hiddenParts(unionReport()).empty()); }

TEST(HiddenPartsTest, AMaskThatIsAskedHidesWhatItDoesNotShow) {
  PlanReport report = unionReport();
  report.shows = [](const MaskSite &site) { return site.depth == 1 || site.kvPos >= 10; };
  const std::vector<HiddenPart> parts = hiddenParts(report);
  ASSERT_EQ(parts.size(), 1u) << "neighbours from whom the same is hidden are one part";
  EXPECT_EQ(parts[0].node, 0);
  EXPECT_EQ(parts[0].from, 0);
  EXPECT_EQ(parts[0].to, 10);
  EXPECT_EQ(parts[0].queryBegin, 0);
  EXPECT_EQ(parts[0].queryEnd, 3);
}

TEST(HiddenPartsTest, QueriesThatDifferHavePartsOfTheirOwn) {
  PlanReport report = unionReport();
  report.shows = [](const MaskSite &site) { return site.depth == 1 || site.kvPos >= 10 * site.query; };
  const std::vector<HiddenPart> parts = hiddenParts(report);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].to, 10);
  EXPECT_EQ(parts[1].to, 20);
  EXPECT_EQ(parts[1].queryBegin, 2);
}

TEST(HiddenPartsTest, LimitsAreKept) {
  PlanReport report = unionReport();
  int questions = 0;
  report.shows = [&](const MaskSite &site) {
    ++questions;
    return site.kvPos % 2 == 0;
  };
  EXPECT_EQ(hiddenParts(report, {.mostParts = 5}).size(), 5u);
  questions = 0;
  (void)hiddenParts(report, {.mostQuestions = 30});
  EXPECT_EQ(questions, 30);
  for (const HiddenPart &part : hiddenParts(report, {.mostQueries = 1}))
    EXPECT_EQ(part.queryEnd, 1);
  for (const HiddenPart &part : hiddenParts(report, {.step = [](int) { return 4; }}))
    EXPECT_EQ((part.to - part.from) % 4, 0);
}

} // namespace
} // namespace deft::plan
