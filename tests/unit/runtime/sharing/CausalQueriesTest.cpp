#include "runtime/sharing/CausalQueries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::sharing {
namespace {

using tree::Query;

/// A path of 3, 2 and 4 tokens.
tree::KvTree path() {
  tree::KvTree tree;
  (void)tree.addNode(-1, 3);
  (void)tree.addNode(0, 2);
  (void)tree.addNode(1, 4);
  return tree;
}

std::vector<Query> queriesOf(int endNode, int tokens, int count) {
  std::vector<Query> queries = {{7, 7}}; // of the request before
  addCausalQueries(path(), endNode, tokens, count, queries);
  queries.erase(queries.begin());
  return queries;
}

TEST(CausalQueriesTest, EachEndsInTheNodeThatHasItsToken) {
  EXPECT_THAT(queriesOf(2, 9, 9),
              testing::ElementsAre(Query{0, 1}, Query{0, 2}, Query{0, 3}, Query{1, 1}, Query{1, 2},
                                   Query{2, 1}, Query{2, 2}, Query{2, 3}, Query{2, Query::kWhole}));
}

TEST(CausalQueriesTest, TheLastOneGoesOnToTheEnd) {
  EXPECT_THAT(queriesOf(2, 9, 1), testing::ElementsAre(Query{2, Query::kWhole}));
  EXPECT_THAT(queriesOf(1, 5, 2), testing::ElementsAre(Query{1, 1}, Query{1, Query::kWhole}));
  EXPECT_THAT(queriesOf(2, 9, 0), testing::IsEmpty());
}

} // namespace
} // namespace deft::sharing
