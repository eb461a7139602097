#include "runtime/sharing/Batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::sharing {
namespace {

using testing::HasSubstr;
using tree::Query;

constexpr int kPageSize = 4, kRow = 8;

/// Three requests with a prompt of two pages.
class BatchTest : public testing::Test {
protected:
  BatchTest() {
    for (const auto &row : {std::vector{1, 2, 3}, {1, 2, 4}, {1, 2, 5}})
      write(rows_++, row);
    update();
  }

  void write(int row, const std::vector<int> &pages) {
    entries_.resize(std::max(entries_.size(), static_cast<std::size_t>(row + 1) * kRow), -9);
    std::copy(pages.begin(), pages.end(), entries_.begin() + row * kRow);
  }
  PageTable table() const { return {.entries = entries_, .rowStride = kRow}; }
  Requests requests() const {
    return {.table = table(), .lengths = lengths_, .queryIndptr = queryIndptr_, .rows = rowOf_, .ids = ids_};
  }
  void update() {
    const auto updated = batch_.update(requests());
    ASSERT_TRUE(updated) << updated.error().message;
    isRight();
  }
  void grow() {
    const auto grown = batch_.grow(table(), lengths_);
    ASSERT_TRUE(grown) << grown.error().message;
    isRight();
  }
  void isRight() {
    const auto verified = batch_.forest().verify(entries_.data());
    ASSERT_TRUE(verified) << verified.error().message;
  }
  std::string whyNotUpdated() {
    const std::uint64_t before = batch_.tree().generation();
    const auto updated = batch_.update(requests());
    EXPECT_EQ(batch_.tree().generation(), before);
    return updated ? "none" : updated.error().message;
  }
  int nodes() const { return batch_.tree().aliveNodes(); }

  std::vector<int> entries_, lengths_ = {9, 10, 11}, rowOf_, queryIndptr_;
  std::vector<std::uint64_t> ids_ = {70, 71, 72};
  int rows_ = 0;
  Batch batch_{PageSize(kPageSize), /*checksEntries=*/true};
};

TEST_F(BatchTest, FindsWhatIsShared) {
  EXPECT_EQ(nodes(), 4);
  EXPECT_EQ(batch_.tree().tokens(), 8 + 1 + 2 + 3);
  EXPECT_EQ(batch_.tree().queries().size(), 3u);
}

TEST_F(BatchTest, AStepWhoseRequestsHaveNoDraftIsNoneWithoutDrafts) {
  const std::vector<int> none = {0, 0, 0};
  Requests asked = requests();
  asked.drafts = none;
  for (int time = 0; time < 2; ++time) {
    ASSERT_TRUE(batch_.update(asked));
    EXPECT_EQ(batch_.tree().queries().size(), 0u);
    update(); // the same requests, with a query each
    EXPECT_EQ(batch_.tree().queries().size(), 3u);
  }
}

TEST_F(BatchTest, GrowthKeepsTheStructure) {
  const std::uint64_t structure = batch_.tree().structureGeneration();
  for (const int more : {1, 0, 1}) {
    for (int &length : lengths_)
      length += more;
    if (lengths_[2] > 12)
      write(2, {1, 2, 5, 6});
    grow();
    update();
  }
  EXPECT_EQ(batch_.tree().structureGeneration(), structure);
  EXPECT_EQ(batch_.tree().tokens(), 8 + 3 + 4 + 5);
}

TEST_F(BatchTest, RequestsComeAndGo) {
  write(1, {1, 2, 7}); // of another one
  write(3, {1, 8});
  lengths_ = {10, 12, 11, 6};
  ids_ = {70, 75, 72, 76};
  update();
  EXPECT_EQ(nodes(), 6);
  ids_ = {76};
  rowOf_ = {3};
  lengths_ = {6};
  entries_.assign(entries_.begin(), entries_.end());
  std::fill_n(entries_.begin(), 3 * kRow, -9);
  update();
  EXPECT_EQ(nodes(), 1);
  EXPECT_EQ(batch_.tree().nodes()[static_cast<std::size_t>(batch_.tree().firstRoot())].location,
            3 * kRow * kPageSize);
}

TEST_F(BatchTest, ARequestInAnotherRowIsTheSame) {
  write(5, {1, 2, 4});
  write(1, {-9, -9, -9});
  rowOf_ = {0, 2, 5};
  lengths_ = {9, 12, 10};
  ids_ = {70, 72, 71};
  update();
  EXPECT_EQ(nodes(), 4);
  EXPECT_EQ(batch_.tree().tokens(), 8 + 1 + 4 + 2);
  EXPECT_EQ(batch_.tree().pathTokens(batch_.tree().queries()[1]), 12);
}

TEST_F(BatchTest, AShorterRequestSharesLess) {
  lengths_ = {9, 6, 11};
  update();
  EXPECT_EQ(batch_.tree().tokens(), 8 + 1 + 3);
  EXPECT_EQ(nodes(), 4);
}

TEST_F(BatchTest, EmptyAndFullAgain) {
  lengths_ = {0, 0, 0};
  update();
  EXPECT_EQ(nodes(), 1);
  EXPECT_EQ(batch_.tree().tokens(), 0);
  EXPECT_EQ(batch_.tree().queries().size(), 3u);
  lengths_ = {9, 1, 0};
  grow();
  EXPECT_EQ(batch_.tree().tokens(), 9);
  lengths_.clear(), ids_.clear();
  update();
  EXPECT_EQ(nodes(), 0);
}

TEST_F(BatchTest, QueriesOfTheLastTokensFollowThem) {
  queryIndptr_ = {0, 3, 3, 4};
  update();
  const std::vector<Query> queries = batch_.tree().queries();
  ASSERT_EQ(queries.size(), 4u);
  for (const auto &[query, tokens] : {std::pair(0, 7), {1, 8}, {2, 9}, {3, 11}})
    EXPECT_EQ(batch_.tree().pathTokens(queries[static_cast<std::size_t>(query)]), tokens);
  lengths_ = {11, 10, 12};
  grow();
  for (const auto &[query, tokens] : {std::pair(0, 9), {1, 10}, {2, 11}, {3, 12}})
    EXPECT_EQ(batch_.tree().pathTokens(batch_.tree().queries()[static_cast<std::size_t>(query)]), tokens);
}

TEST_F(BatchTest, WithoutIdsRowsAreCompared) {
  ids_.clear();
  update(); // everybody anew
  const std::uint64_t structure = batch_.tree().structureGeneration();
  lengths_ = {10, 10, 12};
  update();
  EXPECT_EQ(batch_.tree().structureGeneration(), structure);
  write(0, {1, 2, 6}); // a copy on write of the last page
  write(1, {2, 2, 4});
  update();
  EXPECT_EQ(batch_.tree().tokens(), (8 + 2 + 4) + 10);
}

TEST_F(BatchTest, RowsBackToBackMove) {
  ids_ = {1, 2};
  std::vector<int> entries = {1, 2, 1, 2, 4}, indptr = {0, 2, 5}, last = {3, 4};
  const auto updateAll = [&] {
    const auto updated = batch_.update(
        {.table = {.entries = entries, .indptr = indptr}, .lastPageLengths = last, .ids = ids_});
    ASSERT_TRUE(updated) << updated.error().message;
    const auto verified = batch_.forest().verify(entries.data());
    ASSERT_TRUE(verified) << verified.error().message;
  };
  updateAll();
  EXPECT_EQ(batch_.tree().tokens(), 12);
  entries = {1, 2, 5, 1, 2, 4};
  indptr = {0, 3, 6};
  const std::vector<int> lengths = {9, 12};
  ASSERT_TRUE(batch_.grow({.entries = entries, .indptr = indptr}, lengths));
  EXPECT_TRUE(batch_.forest().verify(entries.data()));
  EXPECT_EQ(batch_.tree().tokens(), 13);
  entries = {1, 2, 4};
  indptr = {0, 3};
  last = {4};
  ids_ = {2};
  updateAll();
  EXPECT_EQ(nodes(), 1);
}

TEST_F(BatchTest, ChangesThatWereNotSaidAreNoticed) {
  entries_[kRow + 1] = 77;
  EXPECT_EQ(whyNotUpdated(), "request 1: page 1 of its row was 2 and is 77");
  const auto grown = batch_.grow(table(), lengths_);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().message, "request 1: page 1 of its row was 2 and is 77");
  EXPECT_EQ(grown.error().hint, "grow() needs requests whose pages stay; call update()");
  ids_[1] = 90;
  update();
  EXPECT_EQ(batch_.tree().tokens(), 4 + (4 + 1 + 3) + 6);
}

TEST_F(BatchTest, WrongStepsChangeNothing) {
  ids_[2] = 70;
  EXPECT_EQ(whyNotUpdated(), "request 2: its id 70 is also that of an earlier request");
  ids_ = {70, 80, 80};
  EXPECT_EQ(whyNotUpdated(), "request 2: its id 80 is also that of an earlier request");
  ids_.clear();
  rowOf_ = {0, 2, 2};
  EXPECT_EQ(whyNotUpdated(), "request 2: its row 2 is also that of an earlier request");
  rowOf_.clear();
  ids_ = {70, 71, 72};
  lengths_[2] = 13; // its fourth page is -9
  EXPECT_EQ(whyNotUpdated(), "request 2: page 3 of row 2 is -9, and 13 tokens are in 4 pages");
  EXPECT_FALSE(batch_.grow(table(), lengths_));
  lengths_[2] = 11;
  Batch small(PageSize(kPageSize), /*checksEntries=*/true, /*lastPage=*/4);
  EXPECT_EQ(small.update(requests()).error().message,
            "request 2: page 2 of row 2 is 5, and the cache has 5 pages");
  lengths_ = {9, 9, 11};
  EXPECT_EQ(batch_.grow(table(), lengths_).error().message, "request 1: 9 tokens, and there were 10");
  EXPECT_EQ(batch_.grow(table(), {}).error().message, "0 lengths, but there are 3 requests");
  lengths_ = {9, 10, 11};
  update();
  EXPECT_EQ(nodes(), 4);
}

/// Of a batch for masks bound by `path`, which show a request's new tokens to each other.
class BoundByPathTest : public BatchTest {
protected:
  BoundByPathTest() {
    batch_ = Batch(PageSize(kPageSize), /*checksEntries=*/true, Batch::kLargestPage, 1, /*seesPath=*/true);
    queryIndptr_ = {0, 1, 3, 4}; // the second one's last two tokens
    update();
  }

  /// What a step that is refused must leave as it was.
  std::string state() const {
    std::string state = std::to_string(batch_.tree().generation());
    const auto add = [&](std::int64_t number) { state += " " + std::to_string(number); };
    for (const tree::Query &query : batch_.tree().queries())
      add(query.node), add(query.position), add(batch_.tree().pathTokens(query));
    for (const int member : batch_.members())
      add(member), add(batch_.forest().tokens(member)), add(batch_.forest().firstEntry(member));
    for (int node = batch_.tree().firstRoot(); node >= 0; node = batch_.tree().nextInPreorder(node))
      add(node), add(batch_.tree().nodes()[static_cast<std::size_t>(node)].location),
          add(batch_.tree().nodes()[static_cast<std::size_t>(node)].tokens);
    return state;
  }
};

TEST_F(BoundByPathTest, AStepInWhichOthersShareNewTokensIsRefusedAndChangesNothing) {
  const std::string before = state();
  const auto entries = entries_;
  for (const bool comes : {false, true}) { // with a request that comes, in a row that another one leaves
    if (comes)
      ids_ = {73, 71, 72};
    write(0, comes ? std::vector{1, 2, 4, 6} : std::vector{1, 2, 3, 6});
    write(2, {1, 2, 4, 7});
    lengths_ = {14, 11, 10}, ids_[2] = 74;
    EXPECT_EQ(whyNotUpdated().substr(0, 65),
              "request 1: others share pages with its new tokens, so its queries");
    EXPECT_EQ(state(), before);
  }
  ids_ = {70, 71, 72}, entries_ = entries, lengths_ = {10, 11, 12};
  update();
  EXPECT_EQ(batch_.tree().queries().size(), 4u);
}

TEST_F(BoundByPathTest, NeitherDoesOneThatOnlyGrows) {
  write(2, {1, 2, 4});
  ids_ = {70, 71, 74}, lengths_ = {9, 11, 9};
  update(); // the third one's 9 tokens are the second one's first ones
  const std::string before = state();
  lengths_ = {9, 12, 11};
  const auto refused = batch_.grow(table(), lengths_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("request 1: others share pages with its new tokens"));
  EXPECT_EQ(state(), before);
  isRight();
  lengths_ = {9, 12, 10};
  grow();
}

TEST_F(BoundByPathTest, DraftsAreRefusedBeforeAnythingChanges) {
  const std::string before = state();
  const std::vector<int> drafts = {0, 2, 0};
  queryIndptr_.clear();
  lengths_ = {10, 10, 11};
  Requests asked = requests();
  asked.drafts = drafts;
  const auto refused = batch_.update(asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "request 1: it has drafts, but the batch is for masks bound by `path`");
  EXPECT_EQ(state(), before);
}

} // namespace
} // namespace deft::sharing
