#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

deft_plan_options noOptions() {
  auto options = sized<deft_plan_options>();
  options.workers = 2;
  return options;
}

class PlanTest : public testing::Test {
protected:
  PlanHandle plan(const deft_plan_options &options) {
    return made<PlanHandle>(deft_plan_make, attention.get(), tree.get(), &options);
  }
  deft_plan_summary summaryOf(const PlanHandle &plan) {
    auto summary = sized<deft_plan_summary>();
    EXPECT_EQ(deft_plan_get_summary(plan.get(), &summary), DEFT_OK);
    return summary;
  }

  AttentionHandle attention = loadAttention();
  TreeHandle tree = twoBranches(100, 8);
};

TEST_F(PlanTest, ThePartitionIsTheCallers) {
  deft_plan_options options = noOptions();
  options.partition = DEFT_PARTITION_QUERY;
  options.chunk_tokens = 1 << 20;
  EXPECT_EQ(summaryOf(plan(options)).tokens_read, 216); // all of both paths
  options.partition = DEFT_PARTITION_NODE;
  EXPECT_EQ(summaryOf(plan(options)).tokens_read, 116); // the prompt once
  options.chunk_tokens = 16;
  EXPECT_GT(summaryOf(plan(options)).items, 7);
  options.chunk_tokens = DEFT_CHUNK_FILL;
  EXPECT_TRUE(plan(options));
  options.chunk_tokens = -5;
  deft_plan *none = nullptr;
  EXPECT_NE(deft_plan_make(attention.get(), tree.get(), &options, &none), DEFT_OK);
  EXPECT_THAT(deft_error_text(), HasSubstr("chunk is -5 tokens"));
  options = noOptions();
  options.partition = -1;
  EXPECT_EQ(deft_plan_make(attention.get(), tree.get(), &options, &none), DEFT_USAGE);
  EXPECT_STREQ(deft_error_text(), "deft_plan_options::partition is -1, not between 0 and 8");
}

TEST_F(PlanTest, ItAdvancesWithTheTree) {
  const PlanHandle advancing = plan(noOptions());
  deft_advanced advanced = -1;
  ASSERT_EQ(deft_plan_advance(advancing.get(), tree.get(), &advanced), DEFT_OK);
  EXPECT_EQ(advanced, DEFT_ADVANCED_NOTHING);
  ASSERT_EQ(deft_tree_append(tree.get(), 1, 1), DEFT_OK);
  EXPECT_EQ(deft_plan_is_current(advancing.get()), 0);
  ASSERT_EQ(deft_plan_advance(advancing.get(), tree.get(), &advanced), DEFT_OK);
  EXPECT_EQ(advanced, DEFT_ADVANCED_IN_PLACE);
  EXPECT_EQ(deft_plan_is_current(advancing.get()), 1);
  ASSERT_EQ(deft_tree_add_query(tree.get(), 0, DEFT_WHOLE, nullptr), DEFT_OK);
  ASSERT_EQ(deft_plan_advance(advancing.get(), tree.get(), &advanced), DEFT_OK);
  EXPECT_EQ(advanced, DEFT_ADVANCED_REMADE);
  EXPECT_EQ(deft_plan_query_count(advancing.get()), 3);
}

TEST_F(PlanTest, ItOutlivesItsTree) {
  const PlanHandle left = plan(noOptions());
  tree.reset();
  attention.reset();
  EXPECT_EQ(deft_plan_query_count(left.get()), 2);
}

TEST_F(PlanTest, PlacesAreCheckedWhereAskedFor) {
  deft_plan_options options = noOptions();
  options.checks_places = 1;
  EXPECT_TRUE(plan(options));
  ASSERT_EQ(deft_tree_place(tree.get(), 2, 99), DEFT_OK);
  deft_plan *none = nullptr;
  EXPECT_NE(deft_plan_make(attention.get(), tree.get(), &options, &none), DEFT_OK);
  EXPECT_THAT(deft_error_text(), HasSubstr("node 2"));
}

TEST_F(PlanTest, TheChoiceSaysWhy) {
  const PlanHandle chosen = plan(noOptions());
  const auto choice = made<Owned<deft_config_choice>>(deft_plan_get_choice, chosen.get());
  EXPECT_EQ(choice->size, sizeof *choice);
  EXPECT_STREQ(choice->rule, "heuristic");
  EXPECT_STRNE(choice->why, "");
  deft_plan_options options = noOptions();
  options.is_invariant = 1;
  const PlanHandle invariant = plan(options);
  const auto fixed = made<Owned<deft_config_choice>>(deft_plan_get_choice, invariant.get());
  EXPECT_THAT(fixed->why, HasSubstr("invariant"));
}

TEST_F(PlanTest, APictureIsOfTheTreeThatWasPlanned) {
  const PlanHandle planned = plan(noOptions());
  const auto svg = made<Owned<char>>(deft_plan_get_picture, planned.get(), tree.get());
  EXPECT_THAT(svg.get(), testing::StartsWith("<svg"));
  EXPECT_THAT(svg.get(), HasSubstr("for host_program"));
  ASSERT_EQ(deft_tree_append(tree.get(), 2, 1), DEFT_OK);
  char *none = nullptr;
  EXPECT_EQ(deft_plan_get_picture(planned.get(), tree.get(), &none), DEFT_USAGE);
  EXPECT_THAT(deft_error_text(), HasSubstr("the tree has changed since"));
}

TEST_F(PlanTest, APageIsOfOnePlanOrOfTwo) {
  const PlanHandle planned = plan(noOptions());
  deft_plan_options options = noOptions();
  options.partition = DEFT_PARTITION_QUERY;
  const PlanHandle other = plan(options);
  char *html = nullptr;
  ASSERT_EQ(deft_plan_get_page(planned.get(), tree.get(), nullptr, nullptr, &html), DEFT_OK)
      << deft_error_text();
  EXPECT_THAT(Owned<char>(html).get(), testing::AllOf(testing::StartsWith("<!doctype html>"),
                                                      HasSubstr("Plan of a tree for host_program")));
  ASSERT_EQ(deft_plan_get_page(planned.get(), tree.get(), other.get(), tree.get(), &html), DEFT_OK)
      << deft_error_text();
  EXPECT_THAT(Owned<char>(html).get(),
              testing::AllOf(HasSubstr("Plans of a tree"), HasSubstr("\"label\":\"query\"")));
  EXPECT_EQ(deft_plan_get_page(planned.get(), tree.get(), other.get(), nullptr, &html), DEFT_USAGE);
  EXPECT_EQ(html, nullptr);
  EXPECT_THAT(deft_error_text(), HasSubstr("against_tree is null"));
}

TEST_F(PlanTest, APageNamesThePlanThatIsStale) {
  const PlanHandle stale = plan(noOptions());
  ASSERT_EQ(deft_tree_append(tree.get(), 2, 1), DEFT_OK);
  const PlanHandle current = plan(noOptions());
  char *html = nullptr;
  EXPECT_EQ(deft_plan_get_page(stale.get(), tree.get(), nullptr, nullptr, &html), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "plan");
  EXPECT_EQ(deft_plan_get_page(current.get(), tree.get(), stale.get(), tree.get(), &html), DEFT_USAGE);
  EXPECT_STREQ(deft_error_field(), "against");
  EXPECT_THAT(deft_error_text(), HasSubstr("the tree has changed since"));
}

} // namespace
} // namespace deft::c_test
