#include <deft/deft.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(StatusTest, EachThreadHasItsOwnLastError) {
  EXPECT_EQ(deft_tree_append(nullptr, 0, 1), DEFT_USAGE);
  std::thread([] {
    EXPECT_STREQ(deft_error_text(), "");
    deft_tree *tree = nullptr;
    EXPECT_EQ(deft_tree_parse("{", &tree), DEFT_DIAGNOSTICS);
    EXPECT_EQ(tree, nullptr);
  }).join();
  EXPECT_STREQ(deft_error_text(), "deft_tree_append: tree is null");
}

TEST(StatusTest, ASuccessLeavesTheLastErrorAsItIs) {
  EXPECT_EQ(deft_tree_append(nullptr, 0, 1), DEFT_USAGE);
  deft_tree *tree = nullptr;
  ASSERT_EQ(deft_tree_make(&tree), DEFT_OK);
  EXPECT_STREQ(deft_error_message(), "deft_tree_append: tree is null");
  deft_tree_destroy(tree);
}

TEST(StatusTest, TheTextIsTheMessageAndTheHint) {
  const deft_runtime_options unsized = {};
  deft_runtime *runtime = nullptr;
  EXPECT_EQ(deft_runtime_make(&unsized, &runtime), DEFT_USAGE);
  EXPECT_THAT(deft_error_message(), StartsWith("deft_runtime_options::size is 0"));
  EXPECT_THAT(deft_error_hint(), HasSubstr("sizeof(deft_runtime_options)"));
  EXPECT_EQ(std::string(deft_error_text()),
            std::string(deft_error_message()) + "\n  = hint: " + deft_error_hint());
}

TEST(StatusTest, TheVersionIsThatOfTheLibrary) {
  EXPECT_THAT(deft_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

} // namespace
