#include "tuner/workload/RecordFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::workload {
namespace {

std::string treeFile(const std::string &nodes) {
  return R"({"format":"recorded-tree/1","name":"x","columns":["parent","tokens","first_step","last_step"],
             "trees":[{"nodes":[)" +
         nodes + "]}]}";
}

std::string tokenFile(const std::string &parents, const std::string &records) {
  return R"({"format":"token-tree/1","name":"x","parents":)" + parents + R"(,"records":)" + records + "}";
}

const char *const kSearch = "[-1,10,-9,0],[0,3,1,3],[0,5,1,5],[1,2,6,7]";
const char *const kRun = R"([{"prompt_characters":42,"accepted":[1,2]}])";

TEST(RecordFileTest, ReadsTrees) {
  const auto file = parseRecordFile(treeFile(kSearch));
  ASSERT_TRUE(file) << file.error().message;
  const auto &nodes = std::get<RecordedTrees>(*file).trees.at(0);
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[3].parent, 1);
  EXPECT_EQ(nodes[3].tokens, 2);
  EXPECT_EQ(nodes[3].firstStep, 6);
  EXPECT_EQ(nodes[3].lastStep, 7);
}

TEST(RecordFileTest, ReadsTokenTrees) {
  const auto file = parseRecordFile(tokenFile("[-1,0,0]", kRun));
  ASSERT_TRUE(file) << file.error().message;
  const auto &record = std::get<TokenTreeRecords>(*file);
  EXPECT_THAT(record.parents, ::testing::ElementsAre(-1, 0, 0));
  EXPECT_EQ(record.records.at(0).promptCharacters, 42);
  EXPECT_THAT(record.records.at(0).accepted, ::testing::ElementsAre(1, 2));
}

TEST(RecordFileTest, EveryTruncationIsAnError) {
  for (const std::string &text : {treeFile(kSearch), tokenFile("[-1,0,0]", kRun)})
    for (std::size_t length = 0; length < text.size(); ++length)
      EXPECT_FALSE(parseRecordFile(text.substr(0, length))) << length;
}

TEST(RecordFileTest, ErrorsNameThePlace) {
  const std::pair<std::string, const char *> cases[] = {
      {"[]", "not a recorded workload"},
      {"{}", "not a recorded workload"},
      {"{", "not valid JSON at 1:2: unexpected end of input, expected string literal"},
      {R"({"format":"recorded-tree/2"})",
       R"(format is "recorded-tree/2", this program reads "recorded-tree/1" and "token-tree/1")"},
      {R"({"format":7})", R"(format is 7, this program reads "recorded-tree/1" and "token-tree/1")"},
      {R"({"format":"recorded-tree/1","name":7})", "name must be a string, is number"},
      {R"({"format":"recorded-tree/1","name":"x","trees":[]})", "the record lacks `columns`"},
      {R"({"format":"recorded-tree/1","name":"x","columns":["parent"],"trees":[]})",
       R"(columns must be ["parent","tokens","first_step","last_step"], is ["parent"])"},
      {R"({"format":"recorded-tree/1","name":"x","columns":["parent","tokens","first_step","last_step"],"trees":[]})",
       "trees is empty"},
      {R"({"format":"recorded-tree/1","name":"x","columns":["parent","tokens","first_step","last_step"],"trees":[{}]})",
       "trees[0] lacks `nodes`"},
      {treeFile(""), "trees[0].nodes is empty"},
      {treeFile("7"), "trees[0].nodes[0] must be an array, is number"},
      {treeFile("[-1,1,0]"), "trees[0].nodes[0] has 3 numbers, must have 4"},
      {treeFile("[-1,1,0,0.5]"), "trees[0].nodes[0][3] must be an integer, is 0.5"},
      {treeFile("[0,1,0,0]"), "trees[0].nodes[0]: parent 0 is not an earlier node"},
      {treeFile("[-1,1,0,0],[-2,1,1,1]"), "trees[0].nodes[1]: parent -2 is not an earlier node"},
      {treeFile("[-1,5,-9,0]"), "trees[0].nodes[0]: 5 tokens, but the steps -9 to 0 make 10"},
      {treeFile("[-1,1,-1,-1]"), "trees[0].nodes[0]: last step -1, must be 0 to 16777216"},
      {treeFile("[-1,2,1,2],[0,2,2,3]"), "trees[0].nodes[1]: first step 2, but its parent grows until 2"},
      {tokenFile("[]", kRun), "parents is empty"},
      {tokenFile("[-1,1]", kRun), "parents[1] is 1, must be an earlier token or -1"},
      {tokenFile("[-1]", "[]"), "records is empty"},
      {tokenFile("[-1]", R"([{"accepted":[1]}])"), "records[0] lacks `prompt_characters`"},
      {tokenFile("[-1]", R"([{"prompt_characters":-1,"accepted":[1]}])"),
       "records[0].prompt_characters is -1, must not be negative"},
      {tokenFile("[-1]", R"([{"prompt_characters":1,"accepted":[1,-1]}])"),
       "records[0].accepted[1] is -1, must be 0 to 1073741824"},
      {tokenFile("[-1]", R"([{"prompt_characters":1,"accepted":[1],"text":"x"}])"),
       "records[0] has an unknown key `text`"},
  };
  for (const auto &[text, message] : cases) {
    const auto file = parseRecordFile(text);
    ASSERT_FALSE(file) << text;
    EXPECT_EQ(file.error().message, message) << text;
  }
}

TEST(RecordFileTest, AMissingFileIsNamed) {
  const auto file = readRecordFile("/nowhere/record.json");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, ::testing::HasSubstr("/nowhere/record.json"));
}

} // namespace
} // namespace deft::workload
