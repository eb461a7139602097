#include "tools/deftc/bench/OwnRows.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

class OwnRowsTest : public testing::Test {
protected:
  OwnRowsTest() {
    module_cache::writeText(folder.path("my.deft"),
                            "attention a { query_heads = 8; kv_heads = 4; head_dim = 64; }\n"
                            "attention b : a { kv_heads = 2; param slope : f32; score = s * slope; }\n");
  }
  std::string spec(const char *name) const { return folder.path("my.deft") + "#" + name; }
  static std::vector<std::string> names(const OwnRows &own) {
    std::vector<std::string> names;
    for (const bench::KernelRow &row : own.rows())
      names.emplace_back(row.name);
    return names;
  }

  module_cache::TestFolder folder;
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, false};
};

TEST_F(OwnRowsTest, EachAttentionIsRunOnEachTree) {
  const auto made =
      OwnRows::make(context, {spec("a"), spec("b")}, {"few_shot:prompt=100"}, {folder.path("t.json")});
  ASSERT_TRUE(made) << made.error().message;
  const OwnRows own = *made; // rows name texts that are copied, too
  EXPECT_THAT(names(*made), testing::ElementsAre("few_shot:prompt=100, a", "t.json, a",
                                                 "few_shot:prompt=100, b", "t.json, b"));
  EXPECT_EQ(made->rows()[1].attention, "a");
  EXPECT_EQ(made->rows()[1].treeFile, folder.path("t.json"));
  EXPECT_EQ(made->rows()[2].attention, "b");
  EXPECT_EQ(made->rows()[2].workload, "few_shot:prompt=100");
  for (std::size_t row = 0; row < 4; ++row)
    EXPECT_EQ(made->subjectOf(row).spec, spec(row < 2 ? "a" : "b")) << row;
  EXPECT_THAT(made->subjectOf(3).params, testing::ElementsAre("slope=0.05"));
  EXPECT_FALSE(context.files.writes(folder.path("t.json"))) << "it is read later";
}

TEST_F(OwnRowsTest, TheOnlyAttentionIsNotNamed) {
  auto made = OwnRows::make(context, {spec("a")}, {"few_shot:prompt=100"}, {});
  ASSERT_TRUE(made);
  const OwnRows moved = std::move(*made);
  EXPECT_THAT(names(moved), testing::ElementsAre("few_shot:prompt=100"));
}

TEST_F(OwnRowsTest, TwoAttentionsOfOneNameAreNotMeasuredAsOne) {
  module_cache::writeText(folder.path("other.deft"),
                          "attention a { query_heads = 16; kv_heads = 4; head_dim = 128; }\n");
  const auto made = OwnRows::make(context, {spec("a"), folder.path("other.deft")}, {"few_shot"}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(made.error().message,
            "`" + folder.path("other.deft") + "` has an attention `a`, and so does an earlier one");
}

TEST_F(OwnRowsTest, ASpecOfSeveralHasToBeChosenFrom) {
  const auto made = OwnRows::make(context, {folder.path("my.deft")}, {"few_shot"}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, support::ErrorCode::Usage);
}

} // namespace
} // namespace deft::cli
