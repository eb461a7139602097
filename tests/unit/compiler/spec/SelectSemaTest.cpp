// Rules K1, K2, K3, K4, K6, as far as a spec can break them.
#include "tests/unit/compiler/spec/SpecTesting.h"

#include <gmock/gmock.h>

namespace deft::spec::testing {
namespace {

SelectSpec select(const std::string &items) {
  const Compiled compiled = compile(attention("select { " + items + " }"));
  EXPECT_EQ(compiled.findings, "");
  EXPECT_TRUE(compiled.only().select);
  return compiled.only().select.value_or(SelectSpec());
}

std::string findings(const std::string &items) {
  return compile(attention("select { " + items + " }")).findings;
}

TEST(SelectSemaTest, ABudgetIsAllThatIsNeeded) {
  const SelectSpec chosen = select("budget = 4096;");
  EXPECT_EQ(chosen.budget.values, std::vector<int>{4096});
  EXPECT_FALSE(chosen.budget.tunable);
  EXPECT_EQ(chosen.by, SelectBy::KvHead);
  EXPECT_EQ(chosen.keepFirst, 0);
  EXPECT_EQ(chosen.keepLast, 0);
  EXPECT_FALSE(compile(attention("")).only().select);
}

TEST(SelectSemaTest, AHostMayChooseAmongSeveralBudgets) {
  const SelectSpec chosen = select("budget = tune(4096, 256, 4 * 256); keep_first = 4; keep_last = 8 * 8;");
  EXPECT_EQ(chosen.budget.values, (std::vector<int>{4096, 256, 1024}));
  EXPECT_EQ(chosen.defaultBudget(), 4096);
  EXPECT_EQ(chosen.keepFirst, 4);
  EXPECT_EQ(chosen.keepLast, 64);
}

TEST(SelectSemaTest, ListsAreByKvHeadQueryHeadOrQuery) {
  const auto variantOf = [](const std::string &by) {
    return compile(attention("select { budget = 16; by = " + by + "; }")).only();
  };
  EXPECT_EQ(variantOf("kv_head").lists(), 4); // of 8 query heads
  EXPECT_EQ(variantOf("kv_head").listOf(5), 2);
  EXPECT_EQ(variantOf("query_head").lists(), 8);
  EXPECT_EQ(variantOf("query_head").listOf(5), 5);
  EXPECT_EQ(variantOf("query").lists(), 1);
  EXPECT_EQ(variantOf("query").listOf(5), 0);
  EXPECT_THAT(findings("budget = 16; by = kv_heads;"), ::testing::HasSubstr("unknown lists `kv_heads`"));
}

TEST(SelectSemaTest, ACallerMayHandOverTheLists) {
  const Variant given = compile(attention("param w : f32[tokens]; score = s + w[token] + 0.0 * head; "
                                          "select { budget = 7; by = caller; }"))
                            .only();
  EXPECT_TRUE(given.readsGivenLists());
  EXPECT_EQ(given.lists(), 1);
  EXPECT_EQ(given.listOf(5), 0);
  EXPECT_FALSE(compile(attention("select { budget = 7; }")).only().readsGivenLists());
  EXPECT_THAT(findings("budget = 16; by = caller; keep_last = 0;"),
              ::testing::HasSubstr("lists by `caller` have the tokens that the caller put there"));
  for (const char *hook : {"mask = tree && kv_pos > 4;", "score = s * depth;", "key = x * (1.0 + pos);"})
    EXPECT_THAT(compile(attention(std::string(hook) + " select { budget = 7; by = caller; }")).findings,
                ::testing::HasSubstr(" is unknown for tokens of lists by `caller`"))
        << hook;
}

TEST(SelectSemaTest, WhatIsKeptFitsTheSmallestBudget) {
  EXPECT_EQ(findings("budget = tune(256, 16); keep_first = 8; keep_last = 7;"), "");
  EXPECT_THAT(findings("budget = tune(256, 16); keep_first = 8; keep_last = 9;"),
              ::testing::HasSubstr("budget = 16 is below keep_first + keep_last = 17"));
}

TEST(SelectSemaTest, WhatIsBoundByThePathSelectsNothing) {
  EXPECT_THAT(compile(attention("mask = path; select { budget = 16; }")).findings,
              ::testing::HasSubstr("`select` does not go with a mask bound by `path`"));
}

TEST(SelectSemaTest, ABudgetHasALeastAndAMost) {
  EXPECT_EQ(findings("budget = 1;"), "");
  EXPECT_EQ(findings("budget = 1048576;"), "");
  EXPECT_THAT(findings("budget = 0;"), ::testing::HasSubstr("budget = 0 is below 1"));
  EXPECT_THAT(findings("budget = 1048577;"),
              ::testing::HasSubstr("budget = 1048577 is above the limit of 1048576"));
  EXPECT_THAT(findings("budget = 16; keep_last = -1;"), ::testing::HasSubstr("keep_last = -1 is below 0"));
  EXPECT_THAT(findings("budget = tune(16, 16);"), ::testing::HasSubstr("budget = 16 is listed twice"));
  EXPECT_THAT(findings("by = query;"), ::testing::HasSubstr("the selection has no `budget`"));
}

// Rule A8.
TEST(SelectSemaTest, AnHeirsSelectionReplacesTheWholeOfTheBases) {
  const Compiled compiled = compile(attention("select { budget = 64; keep_last = 8; by = query; }") +
                                    "\nattention b : a { select { budget = 32; } }");
  ASSERT_EQ(compiled.variants.size(), 2u) << compiled.findings;
  EXPECT_EQ(compiled.variants[1].select->budget.values, std::vector<int>{32});
  EXPECT_EQ(compiled.variants[1].select->keepLast, 0);
  EXPECT_EQ(compiled.variants[1].select->by, SelectBy::KvHead);
}

} // namespace
} // namespace deft::spec::testing
