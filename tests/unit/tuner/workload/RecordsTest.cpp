#include "tuner/workload/Workload.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sys/stat.h>

/// Records replayed, from a folder as users have them.
namespace deft::workload {
namespace {

using ::testing::ElementsAre;

/// A prompt of 10; three thoughts; the second, of 5 tokens, is gone on from by two; and a second search.
const char *const kSearch =
    R"({"format":"recorded-tree/1","name":"search","source":"by hand","meaning":"a text",
 "columns":["parent","tokens","first_step","last_step"],
 "trees":[{"nodes":[[-1,10,-9,0],[0,3,1,3],[0,5,1,5],[0,1,1,1],[2,2,6,7],[2,4,6,9]]},
          {"nodes":[[-1,4,-3,0],[0,2,1,2]]}]})";

/// Token 0, its guesses 1 and 2, and below the second of them 3.
const char *const kDrafts = R"({"format":"token-tree/1","name":"drafts","parents":[-1,0,0,2],
 "records":[{"prompt_characters":42,"accepted":[1,3,0,5,2]},{"prompt_characters":8,"accepted":[1]}]})";

class RecordsTest : public ::testing::Test {
protected:
  RecordsTest() {
    write("search.json", kSearch);
    write("drafts.json", kDrafts);
    write("other.json", "{\"format\": \"deftc-tree\"}");
    write("notes.txt", "no record");
  }

  void write(const std::string &name, const std::string &text) { std::ofstream(folder_.path(name)) << text; }

  Workload mustMake(const std::string &name) {
    auto workload = make(name, 0, folder_.path());
    EXPECT_TRUE(workload) << workload.error().message;
    return std::move(*workload);
  }

  module_cache::TestFolder folder_;
};

/// The path lengths that the step's queries see, in their order.
std::vector<int> paths(const Workload &workload) {
  std::vector<int> lengths;
  for (const tree::Query &query : workload.tree().queries())
    lengths.push_back(workload.tree().pathTokens(query));
  return lengths;
}

TEST_F(RecordsTest, AreListedWithTheGeneratedOnes) {
  const auto all = list(folder_.path());
  ASSERT_TRUE(all);
  std::vector<std::string> recorded;
  for (const Description &description : *all)
    if (description.isRecorded)
      recorded.push_back(description.name + ": " + description.line);
  EXPECT_THAT(recorded,
              ElementsAre("drafts: recorded: speculative decoding, 4 guessed tokens a step, accepted lengths "
                          "of 2 runs",
                          "search: recorded: 2 searches, step by step"));
}

TEST_F(RecordsTest, ASearchIsReplayedStepByStep) {
  Workload search = mustMake("search");
  EXPECT_EQ(search.steps(), 9);
  const std::vector<std::vector<int>> expected = {{11, 11, 11}, {12, 12}, {13, 13}, {14}, {15},
                                                  {16, 16},     {17, 17}, {18},     {19}};
  for (int step = 1; step <= 9; ++step) {
    EXPECT_EQ(search.step(), step);
    EXPECT_EQ(paths(search), expected[step - 1]) << step;
    EXPECT_EQ(*search.next(), step < 9);
  }
  EXPECT_EQ(search.tree().tokens(), 10 + 3 + 5 + 1 + 2 + 4);
  EXPECT_EQ(search.tree().aliveNodes(), 6);
}

TEST_F(RecordsTest, AnyStepOfAnyTree) {
  EXPECT_THAT(paths(mustMake("search:tree=0,step=7")), ElementsAre(17, 17));
  EXPECT_THAT(paths(mustMake("search:tree=1,step=2")), ElementsAre(6));
  EXPECT_EQ(make("search:tree=2", 0, folder_.path()).error().message,
            "workload `search`: parameter `tree` is `2`, must be an integer from 0 to 1");
  EXPECT_EQ(make("search:tree=1,step=3", 0, folder_.path()).error().message,
            "step 3 of workload `search:tree=1`, which has steps 1 to 2");
}

TEST_F(RecordsTest, PruningLeavesWhatIsReadAsItIs) {
  Workload all = mustMake("search"), pruned = mustMake("search:prune=1");
  do {
    EXPECT_EQ(paths(all), paths(pruned)) << all.step();
  } while (*all.next() && *pruned.next());
  EXPECT_EQ(pruned.tree().aliveNodes(), 3); // the prompt, the second thought, its second
  EXPECT_EQ(pruned.tree().tokens(), 19);
}

TEST_F(RecordsTest, ATokenTreeHangsBelowWhatWasAccepted) {
  Workload drafts = mustMake("drafts");
  EXPECT_EQ(drafts.steps(), 5);
  // 42 characters are 10.5 tokens, rounded to 11; then what was accepted after each step.
  const int lengths[] = {11, 12, 15, 15, 20};
  for (int length : lengths) {
    EXPECT_THAT(paths(drafts), ElementsAre(length + 1, length + 2, length + 2, length + 3));
    (void)drafts.next();
  }
}

TEST_F(RecordsTest, AcceptedTokensComeFromTheTreeAndThenFromBehindIt) {
  using tree::TreeEdit;
  Workload drafts = mustMake("drafts:step=3"); // three were accepted: tokens 0, 2 and 3
  ASSERT_GE(drafts.edits().size(), 1u);
  EXPECT_EQ(drafts.edits()[0], (TreeEdit{TreeEdit::Kind::Accept, 0, 4}));
  EXPECT_EQ(drafts.edits()[1].kind, TreeEdit::Kind::AddNode);
  ASSERT_TRUE(drafts.seek(5)); // five: two more than the tree is deep
  EXPECT_EQ(drafts.edits()[0].kind, TreeEdit::Kind::Accept);
  EXPECT_EQ(drafts.edits()[1], (TreeEdit{TreeEdit::Kind::Append, 0, 2}));
}

TEST_F(RecordsTest, ThePromptCanBeSaidInTokens) {
  EXPECT_THAT(paths(mustMake("drafts:record=1,prompt=100")), ElementsAre(101, 102, 102, 103));
  EXPECT_THAT(paths(mustMake("drafts:record=1")), ElementsAre(3, 4, 4, 5));
}

TEST_F(RecordsTest, ABrokenRecordIsNamed) {
  write("search.json", R"({"format":"recorded-tree/1","name":"search"})");
  const auto search = make("search", 0, folder_.path());
  ASSERT_FALSE(search);
  EXPECT_EQ(search.error().message, folder_.path("search.json") + ": the record lacks `columns`");
  EXPECT_FALSE(list(folder_.path()));
  EXPECT_TRUE(make("drafts", 0, folder_.path()));
}

TEST_F(RecordsTest, PipesInTheFolderAreNotWaitedFor) {
  ASSERT_EQ(::mkfifo(folder_.path("pipe.json").c_str(), 0600), 0);
  EXPECT_TRUE(list(folder_.path()));
  EXPECT_TRUE(make("drafts", 0, folder_.path()));
  EXPECT_FALSE(make("pipe", 0, folder_.path()));
}

TEST_F(RecordsTest, UnknownNamesAndFolders) {
  EXPECT_EQ(make("serch", 0, folder_.path()).error().hint, "did you mean `search`?");
  EXPECT_EQ(make("other", 0, folder_.path()).error().hint, "`deftc workloads` lists them");
  const auto missing = list(folder_.path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, support::ErrorCode::Environment);
}

} // namespace
} // namespace deft::workload
