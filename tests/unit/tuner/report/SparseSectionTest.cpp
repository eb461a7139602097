#include "tuner/report/SparseSection.h"

#include "tests/unit/tuner/sparse/SomeReport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SparseSectionTest, ASentenceSaysWhatCameOfIt) {
  sparse::TuneReport report = sparse::someReport();
  EXPECT_EQ(
      resultText(report),
      "Lists are read by tiles of 32 tokens, 3 stages, 2 warps, in place of the rule's tiles of 64 tokens, 2 "
      "stages, 4 warps. 3 kinds of lists are tuned, 1.046 times as fast as by the rules in the geometric "
      "mean "
      "(1.000 to 1.100); 2 have a cut of their own. It was stopped by its budget.");
  report.tile = report.untunedTile;
  report.known.clear();
  report.lists.pop_back();
  report.ended = sparse::Ended::Complete;
  EXPECT_EQ(resultText(report),
            "Lists are read by tiles of 64 tokens, 2 stages, 4 warps, the rule's. 1 kind of lists "
            "is tuned, 1.100 times as fast as by the rules; 1 has a cut of its own.");
  report.lists.clear();
  report.isPackaged = true;
  EXPECT_EQ(resultText(report),
            "Lists are read by tiles of 64 tokens, 2 stages, 4 warps, those of the package, so only "
            "cuts are tuned. No lists were tuned.");
  report.ended = sparse::Ended::Interrupted;
  EXPECT_THAT(resultText(report), HasSubstr("No lists were tuned before it ended."));
}

TEST(SparseSectionTest, EveryKindOfListsHasARow) {
  const std::string text = sparseSection(sparse::someReport());
  const std::string n = "<td class=\"n\">", e = "</td>";
  const std::string rows =
      "<tr>" + n + "1,024" + e + n + "1" + e + n + "10.00" + e + n + "10.00" + e + n + "1.000x" + e + n +
      "128" + e + n + "128" + e + "<td>the rule's</td></tr>\n" + "<tr>" + n + "4,096" + e + n + "1" + e + n +
      "13.00" + e + n + "12.50" + e + n + "1.040x" + e + n + "256" + e + n + "-" + e +
      "<td>tuned, known before</td></tr>\n" + "<tr>" + n + "4,096" + e + n + "8" + e + n + "44.00" + e + n +
      "40.00" + e + n + "1.100x" + e + n + "1,024" + e + n + "512" + e + "<td>tuned</td></tr>\n";
  EXPECT_THAT(text, HasSubstr(rows));
  EXPECT_THAT(text, HasSubstr("kept in /cache/sparse/h200.json"));
  sparse::TuneReport nothing = sparse::someReport();
  nothing.lists.clear();
  nothing.known.clear();
  nothing.path = "<b>";
  EXPECT_THAT(sparseSection(nothing), Not(HasSubstr("<table>")));
  EXPECT_THAT(sparseSection(nothing), HasSubstr("&lt;b&gt;"));
}

} // namespace
} // namespace deft::report
