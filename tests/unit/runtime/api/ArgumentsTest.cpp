// What the types of the public calls can hold and no call takes: each is an error, and changes nothing.
#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdint>
#include <vector>

namespace deft {
namespace {

using testing::HasSubstr;

Attention attention() { return loadPackage(DEFT_TEST_PACKAGE).value(); }

Tree oneQuery() {
  Tree tree;
  (void)tree.addQuery(tree.addRoot(20, 0).value()).value();
  return tree;
}

/// "none" where there is no error; one that blames the library itself is told apart.
template <typename T> std::string messageOf(const Result<T> &result) {
  if (result)
    return "none";
  return (result.error().code == ErrorCode::Internal ? "a bug: " : "") + result.error().message;
}

TEST(ArgumentsTest, Threads) {
  for (const int threads : {-1, INT_MIN, 1025, 100000, INT_MAX})
    EXPECT_EQ(messageOf(Runtime::create({.threads = threads})),
              "RuntimeOptions::threads is " + std::to_string(threads) + ", not between 0 and 1024");
  EXPECT_EQ(Runtime::create({.threads = 3}).value().threads(), 3);
}

TEST(ArgumentsTest, OptionsOfPlans) {
  const Tree tree = oneQuery();
  const auto error = [&](const PlanOptions &options) {
    return messageOf(Plan::make(attention(), tree, options));
  };
  EXPECT_EQ(error({.workers = -1}), "PlanOptions::workers is -1, not between 0 and 1024");
  EXPECT_EQ(error({.workers = INT_MAX}), "PlanOptions::workers is 2147483647, not between 0 and 1024");
  const std::string last = std::to_string(static_cast<int>(Partition::Auto));
  EXPECT_EQ(error({.partition = static_cast<Partition>(99)}),
            "PlanOptions::partition is 99, not between 0 and " + last);
  EXPECT_EQ(error({.partition = static_cast<Partition>(-1)}),
            "PlanOptions::partition is -1, not between 0 and " + last);
  EXPECT_THAT(error({.partition = static_cast<Partition>(99), .invariant = true}),
              HasSubstr("partition is 99"));
  EXPECT_THAT(error({.chunkTokens = -5}), HasSubstr("chunk is -5 tokens"));
  EXPECT_EQ(error({.partition = Partition::Auto, .chunkTokens = INT_MAX, .workers = 1024}), "none");
}

TEST(ArgumentsTest, StridesOfRuns) {
  Tree tree = oneQuery();
  (void)tree.addQuery(0).value(); // a row by itself has no stride
  const Runtime runtime = Runtime::create({.threads = 1}).value();
  const Plan plan = Plan::make(attention(), tree).value();
  const std::vector<std::uint16_t> values(4 * 16 * 2 * 64);
  std::vector<std::uint16_t> out(2 * 4 * 64);
  const std::vector<int> pages = {0, 1};
  const auto error = [&](const CacheStrides &strides) {
    return messageOf(runtime.run(
        attention(), plan,
        {.q = values.data(), .k = values.data(), .v = values.data(), .pageTable = pages, .strides = strides},
        {.out = out.data()}));
  };
  EXPECT_EQ(error({.page = 2048, .token = -128, .head = 64}),
            "k has strides [2048, -128, 64, 1], none may be less than 0");
  EXPECT_EQ(error({.page = INT64_MIN, .token = 128, .head = 64}),
            "k has strides [-9223372036854775808, 128, 64, 1], none may be less than 0");
  EXPECT_EQ(error({.page = 2048, .token = 128, .head = -1}),
            "k has strides [2048, 128, -1, 1], none may be less than 0");
  const auto overlap = [](const char *strides, const char *entries) {
    return std::string("k has strides ") + strides + ", entries of " + entries + " apart";
  };
  EXPECT_EQ(error({.page = 2048, .token = 64, .head = 64}),
            overlap("[2048, 64, 64, 1]", "page_size overlap: they span 128 elements and begin 64"));
  EXPECT_EQ(error({.page = 2048, .token = 128, .head = 56}),
            overlap("[2048, 128, 56, 1]", "kv_heads overlap: they span 64 elements and begin 56"));
  EXPECT_EQ(error({.page = 2048, .token = 0, .head = 0}), "none");
  const auto rowError = [&](std::int64_t q, std::int64_t v, std::int64_t to) {
    return messageOf(runtime.run(attention(), plan,
                                 {.q = values.data(),
                                  .k = values.data(),
                                  .v = values.data(),
                                  .pageTable = pages,
                                  .vStrides = CacheStrides{.page = 2048, .token = v, .head = 64},
                                  .qStride = q},
                                 {.out = out.data(), .outStride = to}));
  };
  EXPECT_EQ(rowError(0, 128, 256), "none");
  EXPECT_EQ(rowError(255, 128, 256), "q of shape [2, 4, 64] has strides [255, 64, 1], except for the first, "
                                     "which may be larger, they must be [256, 64, 1]");
  EXPECT_EQ(rowError(0, -2, 256), "v has strides [2048, -2, 64, 1], none may be less than 0");
  EXPECT_EQ(rowError(0, 128, -1), "out of shape [2, 4, 64] has strides [-1, 64, 1], except for the first, "
                                  "which may be larger, they must be [256, 64, 1]");
}

TEST(ArgumentsTest, NumbersOfTrees) {
  Tree tree = oneQuery();
  const std::string before = tree.json();
  for (const int wrong : {-2, INT_MIN, INT_MAX}) {
    for (const std::string &message :
         {messageOf(tree.addRoot(wrong)), messageOf(tree.addRoot(1, wrong)),
          messageOf(tree.addChild(wrong, 1)), messageOf(tree.addChild(0, wrong)),
          messageOf(tree.append(0, wrong)), messageOf(tree.append(wrong)), messageOf(tree.fork(wrong)),
          messageOf(tree.fork(0, wrong)), messageOf(tree.prune(wrong)), messageOf(tree.accept(wrong, 0)),
          messageOf(tree.accept(0, wrong)), messageOf(tree.place(0, wrong)), messageOf(tree.place(wrong, 0)),
          messageOf(tree.addQuery(wrong)), messageOf(tree.addQuery(0, wrong)),
          messageOf(tree.removeQuery(wrong)), messageOf(tree.setQueries(std::vector<Query>{{wrong}})),
          messageOf(tree.setQueries(std::vector<Query>{{0, wrong}}))}) {
      EXPECT_NE(message, "none");
      EXPECT_THAT(message, HasSubstr(std::to_string(wrong)));
    }
    EXPECT_FALSE(tree.isAlive(wrong));
    EXPECT_EQ(tree.node(wrong).tokens, 0);
    EXPECT_EQ(tree.query(wrong).node, -1);
    EXPECT_EQ(tree.pathTokens(wrong), 0);
  }
  EXPECT_EQ(tree.json(), before);
}

TEST(ArgumentsTest, NumbersOfSequences) {
  for (const PoolOptions &options :
       {PoolOptions{-1, 4}, PoolOptions{INT_MIN, 4}, PoolOptions{INT_MAX, 4}, PoolOptions{16, -1},
        PoolOptions{16, INT64_MAX}, PoolOptions{0, INT64_MIN}})
    EXPECT_THAT(messageOf(SequenceTree::make(options)), HasSubstr("must be 0 to"));
  SequenceTree sequences = SequenceTree::make({.pageSize = 16, .pages = 4}).value();
  (void)sequences.addQuery(sequences.addRoot(20).value()).value();
  const std::string before = sequences.tree().json();
  for (const int wrong : {-2, INT_MIN, INT_MAX}) {
    for (const std::string &message :
         {messageOf(sequences.addRoot(wrong)), messageOf(sequences.addChild(wrong, 1)),
          messageOf(sequences.addChild(0, wrong)), messageOf(sequences.append(0, wrong)),
          messageOf(sequences.append(wrong)), messageOf(sequences.fork(wrong)),
          messageOf(sequences.fork(0, wrong)), messageOf(sequences.prune(wrong)),
          messageOf(sequences.accept(wrong, 0)), messageOf(sequences.accept(0, wrong)),
          messageOf(sequences.addQuery(wrong)), messageOf(sequences.addQuery(0, wrong)),
          messageOf(sequences.setQueries(std::vector<Query>{{wrong}})),
          messageOf(sequences.addTokenTree(wrong, std::vector<int>{-1})),
          messageOf(sequences.addTokenTree(0, std::vector<int>{-1, wrong}))}) {
      EXPECT_NE(message, "none") << wrong;
      EXPECT_THAT(message, testing::Not(HasSubstr("a bug")));
    }
    EXPECT_EQ(sequences.slot(wrong, 0), -1);
    EXPECT_EQ(sequences.slot(0, wrong), -1);
  }
  EXPECT_EQ(sequences.tree().json(), before);
  EXPECT_EQ(sequences.freePages(), 2);
}

TEST(ArgumentsTest, OptionsOfTuners) {
  const auto error = [](const TuneOptions &options) { return messageOf(Tuner::make(attention(), options)); };
  EXPECT_EQ(error({.device = static_cast<TuneDevice>(99)}), "TuneOptions::device is 99, not between 0 and 2");
  for (const double seconds : {-1.0, std::nan(""), HUGE_VAL, 1e300})
    EXPECT_THAT(error({.budgetSeconds = seconds}), HasSubstr("TuneOptions::budgetSeconds is ")) << seconds;
  EXPECT_EQ(error({.candidates = -1}), "TuneOptions::candidates is -1, not between 0 and 2147483647");
  EXPECT_EQ(error({.threads = -1}), "TuneOptions::threads is -1, not between 0 and 1024");
  EXPECT_EQ(error({.threads = 100000}), "TuneOptions::threads is 100000, not between 0 and 1024");
  EXPECT_EQ(error({.note = "\xff"}), "TuneOptions::note is not UTF-8");
  EXPECT_EQ(error({.shardCount = -1}), "TuneOptions::shardCount is -1, not between 0 and 100000");
  EXPECT_EQ(error({.shardCount = 4, .shard = 4}), "TuneOptions::shard is 4, not between 0 and 3");
  EXPECT_EQ(error({.shard = 1}), "TuneOptions::shard is 1, not between 0 and 0");
  EXPECT_EQ(error({.configFile = "here.json", .shardCount = 2}),
            "TuneOptions::configFile is set, but a shard writes only its journal");
  EXPECT_EQ(messageOf(mergeShards({})), "there is no journal to merge");
  Tuner tuner = Tuner::make(attention()).value();
  EXPECT_EQ(messageOf(tuner.addTree(oneQuery(), "\xff")), "name is not UTF-8");
  EXPECT_THAT(messageOf(tuner.addWorkload("few_shot:branches=-1")), HasSubstr("`branches` is `-1`"));
  EXPECT_NE(messageOf(tuner.addWorkload("\xff")), "none");
}

} // namespace
} // namespace deft
