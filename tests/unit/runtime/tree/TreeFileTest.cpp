#include "runtime/tree/TreeFile.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace deft::tree {
namespace {

const char *const kExample = R"({"format":"deftc-tree","version":1,
  "nodes":[{"parent":-1,"tokens":200},{"parent":0,"tokens":7}],
  "queries":[{"node":1},{"node":0,"position":150}]})";

std::string withNodes(const std::string &nodes) {
  return R"({"format":"deftc-tree","version":1,"nodes":[)" + nodes + R"(],"queries":[]})";
}

std::string withQuery(const std::string &query) {
  return R"({"format":"deftc-tree","version":1,"nodes":[{"parent":-1,"tokens":7}],"queries":[)" + query +
         "]}";
}

TEST(TreeFileTest, ReadsNodesAndQueries) {
  const auto tree = parseTree(kExample);
  ASSERT_TRUE(tree);
  ASSERT_EQ(tree->nodes().size(), 2u);
  EXPECT_EQ(tree->nodes()[1].parent, 0);
  EXPECT_EQ(tree->nodes()[1].tokens, 7);
  ASSERT_EQ(tree->queries().size(), 2u);
  EXPECT_EQ(tree->seenTokens(tree->queries()[0]), 7);
  EXPECT_EQ(tree->queries()[1].position, 150);
}

TEST(TreeFileTest, RoundTrip) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string text = formatTree(test::randomForest(seed));
    const auto again = parseTree(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(formatTree(*again), text);
  }
  for (const auto &[name, tree] : test::edgeTrees()) {
    SCOPED_TRACE(name);
    const auto again = parseTree(formatTree(tree));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(formatTree(*again), formatTree(tree));
  }
}

TEST(TreeFileTest, EveryTruncationIsAnError) {
  const std::string text = formatTree(*parseTree(kExample));
  for (std::size_t length = 0; length + 1 < text.size(); ++length) // the last byte is a newline
    EXPECT_FALSE(parseTree(text.substr(0, length))) << length;
}

struct Bad {
  std::string json, message;
};

TEST(TreeFileTest, ErrorsNameThePlace) {
  const Bad cases[] = {
      {"{", "not valid JSON at 1:2: unexpected end of input, expected string literal"},
      {"{\n  \"format\": \"deftc-tree\"\n  \"version\"",
       "not valid JSON at 3:11: unexpected string literal, expected `}`"},
      {"[]", "not a tree file"},
      {R"({"format":"deftc-plan","version":1})", "not a tree file"},
      {R"({"format":"deftc-tree"})", "the tree file lacks `version`"},
      {R"({"format":"deftc-tree","version":3})", "tree file version 3, this program reads versions 1 and 2"},
      {R"({"format":"deftc-tree","version":0})", "tree file version 0, this program reads versions 1 and 2"},
      {R"({"format":"deftc-tree","version":"1"})", "version must be an integer, is string"},
      {R"({"format":"deftc-tree","version":1,"nodes":[]})", "the tree file lacks `queries`"},
      {R"({"format":"deftc-tree","version":1,"nodes":[],"queries":[],"node":1})",
       "the tree file has an unknown key `node`"},
      {R"({"format":"deftc-tree","version":1,"nodes":{},"queries":[]})", "nodes must be an array, is object"},
      {R"({"format":"deftc-tree","version":1,"nodes":[],"nodes":[],"queries":[]})",
       "key `nodes` stands twice in one object"},
      {withNodes(R"({"parent":-1,"tokens":1,"tokens":1})"), "key `tokens` stands twice in one object"},
      {withNodes(std::string(100000, '[')), "it is nested too deep"},
      {"\"" + std::string(1000, '[') + "\\\"[\"", "not a tree file"},
      {withNodes("7"), "nodes[0] must be an object, is number"},
      {withNodes(R"({"parent":-1})"), "nodes[0] lacks `tokens`"},
      {withNodes(R"({"parent":-1,"tokens":1,"token":2})"), "nodes[0] has an unknown key `token`"},
      {withNodes(R"({"parent":-1,"tokens":1.5})"), "nodes[0].tokens must be an integer, is 1.5"},
      {withNodes(R"({"parent":-1,"tokens":1e3})"), "nodes[0].tokens must be an integer, is 1000.0"},
      {withNodes(R"({"parent":-1,"tokens":4294967296})"), "nodes[0].tokens is 4294967296, must fit 32 bits"},
      {withNodes(R"({"parent":-1,"tokens":-4294967296})"),
       "nodes[0].tokens is -4294967296, must fit 32 bits"},
      {withNodes(R"({"parent":-1,"tokens":1e999})"), "a number is too large, it ends at 1:71"},
      {withNodes(R"({"parent":-1,"tokens":-1})"), "nodes[0]: -1 tokens in node 0, must be 0 to 1073741824"},
      {withNodes(R"({"parent":0,"tokens":1})"), "nodes[0]: parent 0 of node 0 is not an earlier node"},
      {withNodes(R"({"parent":-1,"tokens":1},{"parent":2,"tokens":1},{"parent":0,"tokens":1})"),
       "nodes[1]: parent 2 of node 1 is not an earlier node"},
      {withQuery(R"({"node":1})"), "queries[0]: query 0 hangs on node 1, but there are 1 nodes"},
      {withQuery(R"({"position":1})"), "queries[0] lacks `node`"},
      {withQuery(R"({"node":0,"position":null})"), "queries[0].position must be an integer, is null"},
      {withQuery(R"({"node":0},{"node":0,"position":8})"),
       "queries[1]: position 8 of query 1 is outside node 0, which has 7 tokens"},
  };
  for (const Bad &bad : cases) {
    const auto tree = parseTree(bad.json);
    ASSERT_FALSE(tree) << bad.json;
    EXPECT_EQ(tree.error().message, bad.message) << bad.json;
    EXPECT_EQ(tree.error().code, support::ErrorCode::Diagnostics);
  }
}

TEST(TreeFileTest, UnknownKeySuggestsTheNearest) {
  EXPECT_EQ(parseTree(withNodes(R"({"parent":-1,"tokens":1,"tokns":2})")).error().hint,
            "did you mean `tokens`?");
}

std::string second(const std::string &nodes) {
  return R"({"format":"deftc-tree","version":2,"nodes":[)" + nodes + R"(],"queries":[]})";
}

TEST(TreeFileTest, TheSecondVersionHasNamesAndLocations) {
  const auto document = parseTreeDocument(second(
      R"({"parent":-1,"tokens":7,"location":32,"name":"a \"b\" \u00e9"},{"parent":0,"tokens":2,"location":5})"));
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_TRUE(document->hasLocations);
  EXPECT_EQ(document->tree.nodes()[0].location, 32);
  EXPECT_EQ(document->tree.nodes()[1].location, 5);
  ASSERT_EQ(document->names.size(), 2u);
  EXPECT_EQ(document->names[0], "a \"b\" \xc3\xa9");
  EXPECT_EQ(document->names[1], "");
  const std::string text = formatTree(*document);
  const auto again = parseTreeDocument(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(formatTree(*again), text);
  EXPECT_EQ(again->names, document->names);
}

TEST(TreeFileTest, WhatNeedsNoSecondVersionIsWrittenAsTheFirst) {
  const auto document = parseTreeDocument(second(R"({"parent":-1,"tokens":7})"));
  ASSERT_TRUE(document);
  EXPECT_FALSE(document->hasLocations);
  EXPECT_TRUE(document->names.empty());
  EXPECT_EQ(formatTree(*document), formatTree(document->tree));
  EXPECT_THAT(formatTree(*document), ::testing::HasSubstr("\"version\": 1"));
}

TEST(TreeFileTest, ErrorsOfTheSecondVersion) {
  const Bad cases[] = {
      {withNodes(R"({"parent":-1,"tokens":1,"location":2})"), "nodes[0] has an unknown key `location`"},
      {second(R"({"parent":-1,"tokens":1,"location":-2})"),
       "nodes[0]: location -2 of node 0 is outside the table, which has at most 1073741824 tokens"},
      {second(R"({"parent":-1,"tokens":1,"location":-1})"),
       "nodes[0]: location -1 of node 0 is outside the table, which has at most 1073741824 tokens"},
      {second(R"({"parent":-1,"tokens":1,"location":0},{"parent":0,"tokens":1})"),
       "nodes[1] lacks `location`, unlike nodes[0]"},
      {second(R"({"parent":-1,"tokens":1},{"parent":0,"tokens":1,"location":3})"),
       "nodes[1] has a `location`, unlike nodes[0]"},
      {second(R"({"parent":-1,"tokens":1,"name":7})"), "nodes[0].name must be a string, is number"},
  };
  for (const Bad &bad : cases) {
    const auto tree = parseTree(bad.json);
    ASSERT_FALSE(tree) << bad.json;
    EXPECT_EQ(tree.error().message, bad.message) << bad.json;
  }
}

TEST(TreeFileTest, TheDeadAreNotWritten) {
  KvTree tree;
  (void)tree.addNode(-1, 10);
  (void)tree.addNode(0, 5);
  (void)tree.addNode(0, 6);
  (void)tree.addNode(1, 2);
  (void)tree.prune(1);
  (void)tree.addNode(2, 7); // takes number 1
  (void)tree.addNode(-1, 9);
  (void)tree.addQuery(1);
  (void)tree.addQuery(3, 4);
  EXPECT_THAT(nodesInFileOrder(tree), ::testing::ElementsAre(0, 2, 1, 3));
  const auto again = parseTree(formatTree(tree));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->nodes().size(), 4u);
  for (std::size_t i = 0; i < tree.queries().size(); ++i)
    EXPECT_EQ(again->pathTokens(again->queries()[i]), tree.pathTokens(tree.queries()[i]));
  EXPECT_EQ(formatTree(*again), formatTree(tree));
}

TEST(TreeFileTest, DeepNestingIsAnErrorNotACrash) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(parseTree(deep));
  EXPECT_FALSE(parseTree(deep + std::string(200000, ']')));
}

TEST(TreeFileTest, FilesRoundTripAndNameTheirPath) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("tree_file_test.json");
  ASSERT_TRUE(writeTreeFile(path, *parseTree(kExample)));
  const auto tree = readTreeFile(path);
  ASSERT_TRUE(tree);
  EXPECT_EQ(formatTree(*tree), formatTree(*parseTree(kExample)));
  std::remove(path.c_str());
  const auto missing = readTreeFile(path);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, ::testing::HasSubstr("tree_file_test.json"));
}

} // namespace
} // namespace deft::tree
