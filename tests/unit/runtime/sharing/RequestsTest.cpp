#include "runtime/sharing/Requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

namespace deft::sharing {
namespace {

const PageSize kPageSize(16);

class RequestsTest : public testing::Test {
protected:
  std::string messageOf(const Requests &requests) {
    const auto rows = RowReader::make(requests.table, kPageSize);
    if (!rows)
      return rows.error().message;
    const auto done = readRequests(requests, *rows, read_);
    return done ? "none" : done.error().message;
  }

  std::vector<int> entries_ = std::vector<int>(23, 1);
  PageTable even_{.entries = entries_, .rowStride = 8, .rowPages = 6};
  std::vector<int> indptr_ = {0, 3, 3, 10};
  PageTable packed_{.entries = entries_, .indptr = indptr_};
  std::vector<Request> read_;
};

TEST_F(RequestsTest, RowsAtEvenDistances) {
  const std::vector<int> lengths = {96, 0, 3};
  ASSERT_EQ(messageOf({.table = even_, .lengths = lengths}), "none");
  EXPECT_EQ(read_[0].entries, 6);
  EXPECT_EQ(read_[2].firstEntry, 16);
  EXPECT_EQ(read_[2].tokens, 3);
  const std::vector<int> rows = {2, 0, 1};
  ASSERT_EQ(messageOf({.table = even_, .lengths = lengths, .rows = rows}), "none");
  EXPECT_EQ(read_[0].firstEntry, 16);
}

TEST_F(RequestsTest, RowsBackToBack) {
  const std::vector<int> lengths = {48, 0, 100};
  ASSERT_EQ(messageOf({.table = packed_, .lengths = lengths}), "none");
  EXPECT_EQ(read_[2].firstEntry, 3);
  EXPECT_EQ(read_[2].entries, 7);
  const std::vector<int> last = {16, 0, 1};
  ASSERT_EQ(messageOf({.table = packed_, .lastPageLengths = last}), "none");
  EXPECT_EQ(read_[0].tokens, 48);
  EXPECT_EQ(read_[1].tokens, 0);
  EXPECT_EQ(read_[2].tokens, 97);
}

TEST_F(RequestsTest, TooLongForItsRow) {
  const std::vector<int> tooLong = {96, 97, 1};
  EXPECT_EQ(messageOf({.table = even_, .lengths = tooLong}),
            "request 1: 97 tokens are in 7 pages, row 1 has room for 6");
  const std::vector<int> packed = {48, 1};
  EXPECT_EQ(messageOf({.table = packed_, .lengths = packed}),
            "request 1: 1 tokens are in 1 pages, row 1 has room for 0");
  const std::vector<int> negative = {1, -2};
  EXPECT_EQ(messageOf({.table = even_, .lengths = negative}), "request 1: -2 tokens, must not be negative");
  const std::vector<int> most = {INT_MAX};
  EXPECT_EQ(messageOf({.table = even_, .lengths = most}),
            "request 0: 2147483647 tokens are in 134217728 pages, row 0 has room for 6");
  const std::vector<int> four = {1, 1, 1, 1};
  EXPECT_EQ(messageOf({.table = even_, .lengths = four}),
            "request 3: there is no row 3, the page table has 3");
}

TEST_F(RequestsTest, IndptrThatFallsOrGoesTooFar) {
  const std::vector<int> lengths = {1, 0}, falling = {0, 5, 3}, negative = {-1, 5, 6}, far = {0, 5, 90};
  EXPECT_EQ(messageOf({.table = {.entries = entries_, .indptr = falling}, .lengths = lengths}),
            "request 1: row 1 goes from entry 5 to 3 of the page table");
  EXPECT_EQ(messageOf({.table = {.entries = entries_, .indptr = negative}, .lengths = lengths}),
            "request 0: row 0 goes from entry -1 to 5 of the page table");
  const std::vector<int> tooLong = {1, 19 * 16};
  EXPECT_EQ(messageOf({.table = {.entries = entries_, .indptr = far}, .lengths = tooLong}),
            "request 1: 304 tokens are in 19 pages, row 1 has room for 18");
}

TEST_F(RequestsTest, LastPagesThatAreNone) {
  const std::vector<int> none = {0}, tooFull = {16, 0, 17};
  EXPECT_EQ(messageOf({.table = packed_, .lastPageLengths = none}),
            "request 0: 0 tokens in its last page, must be 1 to 16");
  EXPECT_EQ(messageOf({.table = packed_, .lastPageLengths = tooFull}),
            "request 2: 17 tokens in its last page, must be 1 to 16");
  EXPECT_EQ(messageOf({.table = even_, .lastPageLengths = none}),
            "lengths of last pages are for page tables with an indptr");
}

TEST_F(RequestsTest, PlacesThatCannotBeNamed) {
  // As tables of a million tokens a row have them; nothing of it is read.
  const int page = 0;
  const PageTable large{.entries = {&page, std::size_t{1} << 31}, .rowStride = 1 << 20};
  const std::vector<int> lengths = {16, 16}, near = {0, 63}, far = {0, 64};
  EXPECT_EQ(messageOf({.table = large, .lengths = lengths, .rows = near}), "none");
  EXPECT_EQ(
      messageOf({.table = large, .lengths = lengths, .rows = far}),
      "request 1: its tokens end at place 1073741840 of the page table, at most 1073741824 can be named");
}

TEST_F(RequestsTest, QueriesThatCannotBe) {
  const std::vector<int> lengths = {5, 0, 3};
  const auto with = [&](const std::vector<int> &indptr) {
    return messageOf({.table = even_, .lengths = lengths, .queryIndptr = indptr});
  };
  EXPECT_EQ(with({0, 5, 6, 6}), "none");
  EXPECT_EQ(with({0, 5, 6, 10}), "request 2: 4 queries, but only 3 tokens");
  EXPECT_EQ(with({0, 5, 7, 10}), "request 1: 2 queries, but only 0 tokens");
  EXPECT_EQ(with({0, 2, 1, 3}), "request 1: query_indptr falls from 2 to 1");
  EXPECT_EQ(with({1, 2, 2, 3}), "query_indptr begins with 1, not with 0");
  EXPECT_EQ(with({0, 1, 2}), "there are 3 entries of query_indptr, 4 are needed");
}

TEST_F(RequestsTest, ListsOfOtherLengths) {
  const std::vector<int> lengths = {5, 0, 3}, rows = {0, 1};
  const std::vector<std::uint64_t> ids = {1, 2, 3, 4};
  EXPECT_EQ(messageOf({.table = even_, .lengths = lengths, .rows = rows}),
            "there are 2 rows of requests, 3 are needed");
  EXPECT_EQ(messageOf({.table = even_, .lengths = lengths, .ids = ids}), "there are 4 ids, 3 are needed");
  const int length = 0;
  EXPECT_EQ(messageOf({.table = even_, .lengths = {&length, 8388608}}),
            "8388608 requests, at most 8388607 can be in a batch");
}

TEST_F(RequestsTest, TablesOfNoForm) {
  EXPECT_EQ(messageOf({.table = {.entries = entries_}}),
            "a page table has either a row stride or an indptr, not neither");
  EXPECT_EQ(messageOf({.table = {.entries = entries_, .rowStride = 8, .indptr = indptr_}}),
            "a page table has either a row stride or an indptr, not both");
  EXPECT_EQ(messageOf({.table = {.entries = entries_, .rowStride = 8, .rowPages = 9}}),
            "9 pages of a row, the next one begins after 8");
  EXPECT_EQ(messageOf({}), "none");
}

} // namespace
} // namespace deft::sharing
