#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace deft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What the library tells while the test lasts.
class LogTest : public ::testing::Test {
protected:
  LogTest() {
    setLog([this](const LogMessage &message) { told_.push_back(message); });
  }
  ~LogTest() override { setLog(nullptr); }

  std::vector<std::string> kinds() const {
    std::vector<std::string> names;
    for (const LogMessage &message : told_)
      names.emplace_back(logKindName(message.kind));
    return names;
  }

  std::vector<LogMessage> told_;
  Attention attention_ = loadPackage(DEFT_TEST_PACKAGE).value();
  Tree tree_;
};

TEST_F(LogTest, TellsOfAPlanWhatItIsAndHowLongItTook) {
  const int root = tree_.addRoot(40, 0).value();
  (void)tree_.addQuery(root).value();
  const Plan plan = Plan::make(attention_, tree_).value();
  ASSERT_THAT(kinds(), ElementsAre("plan"));
  EXPECT_THAT(told_[0].text,
              HasSubstr("`" + attention_.name() + "`: 1 queries, " + std::to_string(plan.summary().items)));
  EXPECT_THAT(told_[0].text, HasSubstr("config: heuristic"));
  EXPECT_GT(told_[0].durationUs, 0);
}

TEST_F(LogTest, AnAdvanceInPlaceIsNotWorthAWordAndANewPlanIs) {
  const int root = tree_.addRoot(40, 0).value();
  const int leaf = tree_.addChild(root, 5, 48).value();
  (void)tree_.addQuery(leaf).value();
  Plan plan = Plan::make(attention_, tree_).value();
  (void)tree_.append(leaf, 1).value();
  ASSERT_EQ(plan.advance(tree_).value(), Advanced::InPlace);
  EXPECT_THAT(kinds(), ElementsAre("plan"));
  (void)tree_.addQuery(root).value();
  ASSERT_EQ(plan.advance(tree_).value(), Advanced::Remade);
  EXPECT_THAT(kinds(), ElementsAre("plan", "plan"));
}

TEST_F(LogTest, TellsOfARunThatIsRefusedForAStalePlan) {
  const int root = tree_.addRoot(40, 0).value();
  (void)tree_.addQuery(root).value();
  const Plan plan = Plan::make(attention_, tree_).value();
  (void)tree_.append(root, 1).value();
  EXPECT_FALSE(Runtime::create({.threads = 1}).value().run(attention_, plan, {}, {}));
  EXPECT_THAT(kinds(), ElementsAre("plan", "stale plan"));
}

TEST_F(LogTest, TellsOfWhatIsCompiledForThisProcessor) {
  if (!hasCompiler())
    GTEST_SKIP() << "this build has no compiler";
  const auto compiled = compileSpec("attention mine { query_heads = 8; kv_heads = 2; head_dim = 64; }");
  ASSERT_TRUE(compiled) << compiled.error().text();
  ASSERT_THAT(kinds(), ElementsAre("compile"));
  EXPECT_EQ(told_[0].text, "`mine` for this processor");
  EXPECT_GT(told_[0].durationUs, 1000);
}

TEST(VersionTest, TheLibraryIsOfItsHeaders) { EXPECT_STREQ(version(), DEFT_VERSION_STRING); }

} // namespace
} // namespace deft
