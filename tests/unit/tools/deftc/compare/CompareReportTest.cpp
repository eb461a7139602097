#include "tools/deftc/compare/CompareReport.h"

#include <gtest/gtest.h>

namespace deft::cli {
namespace {

CompareRow rowOf(const std::string &tree) {
  CompareRow row;
  row.tree = tree;
  return row;
}

/// Of an error where 1 is allowed.
reference::CheckReport checkOf(double error) {
  reference::CheckReport report;
  report.error = error;
  report.allowed = 1;
  return report;
}

TEST(CompareReportTest, RowsOfATreeStandTogether) {
  CompareReport report;
  EXPECT_TRUE(report.byTree().empty());
  for (const char *const tree : {"a", "a", "b", "a"})
    report.rows.push_back(rowOf(tree));
  const auto trees = report.byTree();
  ASSERT_EQ(trees.size(), 3U) << "of one name, and given twice";
  EXPECT_EQ(trees[0].size(), 2U);
  EXPECT_EQ(trees[1].front(), &report.rows[2]);
}

TEST(CompareReportTest, ARowThatWasNotCheckedIsNotWrong) {
  CompareReport report;
  report.rows = {rowOf("a"), rowOf("b")};
  EXPECT_TRUE(report.isRight());
  report.rows[0].check = checkOf(0.5);
  EXPECT_TRUE(report.isRight());
  report.rows[1].check = checkOf(2);
  EXPECT_FALSE(report.isRight());
}

} // namespace
} // namespace deft::cli
