#include "tuner/accounting/IoTable.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace deft::accounting {
namespace {

class IoTableTest : public ::testing::Test {
protected:
  void write(const std::string &name, const std::string &text) const {
    std::ofstream(folder_.path(name + ".json")) << text;
  }

  module_cache::TestFolder folder_;
};

/// The figures of DeFT's table for few-shot prompting.
TEST_F(IoTableTest, FewShotIsThePapers) {
  const auto table = countTable("");
  ASSERT_TRUE(table) << table.error().message;
  const IoGroup &few = table->front();
  ASSERT_EQ(few.key, "few_shot");
  ASSERT_EQ(few.rows.size(), 3U);
  const double expected[3][3] = {{20, 1.68, 17.62}, {30, 2.10, 26.43}, {50, 2.94, 44.05}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(few.rows[i].branches, expected[i][0]);
    EXPECT_EQ(few.rows[i].io.steps, 400);
    EXPECT_NEAR(few.rows[i].sharedTb() / expected[i][1], 1, 0.01);
    EXPECT_NEAR(few.rows[i].queryTb() / expected[i][2], 1, 0.01);
    EXPECT_EQ(few.rows[i].io.shared.cache, few.rows[i].io.shared.cacheOnce);
  }
  EXPECT_EQ(explainDifferences(few), "");
}

TEST_F(IoTableTest, WithoutAFolderRecordedRowsAreNamedAsLeftOut) {
  const auto table = countTable("");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->size(), 3U);
  EXPECT_TRUE((*table)[1].rows.empty());
  EXPECT_EQ((*table)[1].leftOut, (std::vector<std::string>{"reasoning_sorting", "reasoning_document",
                                                           "reasoning_keyword", "reasoning_set"}));
  EXPECT_EQ((*table)[2].leftOut.size(), 4U);
}

/// A prompt of 10, two children that take 2 and 4 tokens: shared 10+1+1, 10+2+2, 10+3, 10+4 tokens.
TEST_F(IoTableTest, ReasoningIsTheMeanOverSearches) {
  write(
      "reasoning_keyword",
      R"({"format": "recorded-tree/1", "name": "k", "columns": ["parent", "tokens", "first_step", "last_step"],
            "trees": [{"nodes": [[-1, 10, -9, 0], [0, 2, 1, 2], [0, 4, 1, 4]]},
                      {"nodes": [[-1, 10, -9, 0], [0, 1, 1, 1]]}]})");
  const auto table = countTable(folder_.path());
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ((*table)[1].rows.size(), 1U);
  const IoRow &row = (*table)[1].rows.front();
  const std::int64_t token = 2LL * 32 * 32 * 128 * 2;
  EXPECT_EQ(row.runs, 2);
  EXPECT_EQ(row.io.shared.cache, (12 + 14 + 13 + 14 + 11) * token / 2);
  EXPECT_EQ(row.io.query.cache, (11 * 2 + 12 * 2 + 13 + 14 + 11) * token / 2);
  EXPECT_EQ((*table)[1].leftOut.size(), 3U);
  const std::string text = explainDifferences((*table)[1]);
  EXPECT_NE(text.find("reasoning_keyword -"), std::string::npos) << text;
}

/// Prompt 4,000, two guessed tokens a step, one accepted: the runs are summed.
TEST_F(IoTableTest, SpeculationIsTheSumOverRuns) {
  write("speculative_t32", R"({"format": "token-tree/1", "name": "t", "parents": [-1, 0],
                               "records": [{"prompt_characters": 9, "accepted": [1, 1]},
                                           {"prompt_characters": 9, "accepted": [2]}]})");
  const auto table = countTable(folder_.path());
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ((*table)[2].rows.size(), 1U);
  const IoRow &row = (*table)[2].rows.front();
  const std::int64_t token = 2LL * 32 * 32 * 128 * 2;
  EXPECT_EQ(row.io.steps, 3);
  EXPECT_EQ(row.io.shared.cache, (4002 + 4003 + 4002) * token);
  EXPECT_EQ(row.io.query.cache, (4001 + 4002 + 4002 + 4003 + 4001 + 4002) * token);
}

TEST_F(IoTableTest, ABrokenRecordIsAnError) {
  write("reasoning_set", "{");
  const auto table = countTable(folder_.path());
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message.find("reasoning_set.json"), std::string::npos) << table.error().message;
}

TEST_F(IoTableTest, ProgressEndsAtTheEnd) {
  long long last = -1, of = 0;
  bool isAscending = true;
  ASSERT_TRUE(countTable("", [&](long long done, long long total) {
    isAscending &= done >= last;
    last = done;
    of = total;
  }));
  EXPECT_TRUE(isAscending);
  EXPECT_GT(last, 0);
  EXPECT_LE(last, of);
}

} // namespace
} // namespace deft::accounting
