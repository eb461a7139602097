#include "tests/unit/runtime/api/GpuFixture.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace deft {
namespace {

using ::testing::HasSubstr;

class GpuRoomTest : public GpuTest {
protected:
  /// A query at the end of each leaf.
  void askLeaves() {
    std::vector<Query> queries;
    for (const int leaf : leaves_)
      queries.push_back({leaf});
    sequences_.setQueries(queries).value();
  }

  /// Branches part anywhere, grow and end; sometimes all but one.
  void change(std::mt19937 &random) {
    const auto below = [&](std::size_t end) { return random() % end; };
    if (below(12) == 0)
      while (leaves_.size() > 1)
        end(leaves_.size() - 1);
    for (int edits = 1 + static_cast<int>(below(6)); edits > 0; --edits) {
      const std::size_t at = below(leaves_.size());
      const int leaf = leaves_[at];
      switch (below(4)) {
      case 0:
        if (leaves_.size() > 1)
          end(at);
        break;
      case 1:
        (void)sequences_.append(leaf, static_cast<int>(below(40)));
        break;
      default:
        if (leaves_.size() >= kMostRequests)
          break;
        const int position = static_cast<int>(below(static_cast<std::size_t>(tree().node(leaf).tokens) + 1));
        const auto branch = sequences_.fork(leaf, position);
        if (!branch)
          break;
        if (position == tree().node(leaf).tokens &&
            tree().node(*branch).parent == leaf) // the leaf is one no more
          if (const auto other = sequences_.fork(leaf))
            leaves_[at] = *other;
        leaves_.push_back(*branch);
      }
    }
    askLeaves();
  }

  void end(std::size_t at) {
    sequences_.prune(leaves_[at]).value();
    leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  static constexpr std::size_t kMostRequests = 24;
};

// A graph that is captured with the room for so many requests serves them, whatever they share.
TEST_F(GpuRoomTest, RoomForSoManyRequestsServesThem) {
  const auto size = roomFor(attention_, kMostRequests, kMostRequests, kPages * kPageSize).value();
  int remade = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    auto plan = GpuPlan::make(attention_, tree()).value();
    plan.reserve(size.room).value();
    ASSERT_TRUE(uploadAndRun(plan));
    void *executable = nullptr;
    ASSERT_NO_FATAL_FAILURE(capture(plan, executable));
    for (int step = 0; step < 25; ++step) {
      change(random);
      const auto advanced = plan.advance(tree());
      ASSERT_TRUE(advanced) << advanced.error().text() << ", seed " << seed << " step " << step;
      remade += *advanced == Advanced::Remade;
      if (auto uploaded = table_.upload(sequences_, stream_); !uploaded)
        FAIL() << uploaded.error().text();
      plan.upload(stream_).value();
      ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
      ASSERT_TRUE(isRight()) << "seed " << seed << " step " << step;
      ASSERT_TRUE(plan.checkReplays());
    }
  }
  EXPECT_GT(remade, 100);
}

// An invariant plan can be cut in no other way when there is too little room.
TEST_F(GpuRoomTest, TheLongestPathSaysHowMuchInvariantPlansNeed) {
  attention_ =
      GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value(), {.invariant = true}).value();
  constexpr int kQueries = 500, kLongest = 100'000, kChunk = 16;
  GpuPlanOptions options{.plan = {.chunkTokens = kChunk, .invariant = true}};
  const auto unknown = roomFor(attention_, kQueries, kQueries, 1'000'000, options).value();
  EXPECT_LT(unknown.room.partials, kQueries * kLongest / kChunk);
  options.longestPath = kLongest;
  const auto known = roomFor(attention_, kQueries, kQueries, 1'000'000, options).value();
  EXPECT_GE(known.room.partials, kQueries * kLongest / kChunk);

  options.plan.chunkTokens = 1;
  options.longestPath = 660;
  auto plan = GpuPlan::make(attention_, tree(), options).value();
  plan.reserve(roomFor(attention_, 20, 20, kPages * kPageSize, options).value().room).value();
  ASSERT_TRUE(uploadAndRun(plan));
  void *executable = nullptr;
  ASSERT_NO_FATAL_FAILURE(capture(plan, executable));
  SequenceTree large = SequenceTree::make({kPageSize, kPages}).value();
  const int prompt = large.addRoot(640).value();
  std::vector<Query> queries;
  for (int i = 1; i <= 15; ++i)
    queries.push_back({large.addChild(prompt, i).value()});
  large.setQueries(queries).value();
  const auto advanced = plan.advance(large.tree());
  EXPECT_TRUE(advanced) << advanced.error().text();
}

TEST_F(GpuRoomTest, APlanThatWasLostWithItsRoomIsMadeAgainForTheSameTree) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_TRUE(uploadAndRun(plan));
  constexpr int kOutOfMemory = 2;
  fake_cuda::failAt("cuMemAlloc", kOutOfMemory);
  EXPECT_FALSE(plan.reserve({.queries = 500, .items = 500, .runs = 5000, .partials = 5000}));
  fake_cuda::failAt("cuMemAlloc", 0);
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_EQ(plan.advance(tree()).value(), Advanced::Remade);
  const auto ran = uploadAndRun(plan);
  ASSERT_TRUE(ran) << ran.error().text();
  EXPECT_TRUE(isRight());
}

TEST_F(GpuRoomTest, BytesAreThoseThatAreAllocated) {
  for (const bool follows : {false, true}) {
    const GpuPlanOptions options{.followsLengths = follows};
    auto made = GpuPlan::make(attention_, tree(), options);
    if (follows && !made && made.error().code == ErrorCode::Environment)
      GTEST_SKIP() << made.error().message; // a kernel to compile, and nothing to do it with
    ASSERT_TRUE(made) << made.error().text();
    const auto size = roomFor(attention_, 500, 700, 100'000, options).value();
    const GpuRoom small = made->room();
    ASSERT_TRUE(small.queries < size.room.queries && small.items < size.room.items &&
                small.runs < size.room.runs && small.partials < size.room.partials);
    (void)fake_cuda::takeCalls();
    made->reserve(size.room).value();
    std::uint64_t device = 0, host = 0;
    for (const fake_cuda::Call &call : fake_cuda::takeCalls()) {
      device += call.name == "cuMemAlloc" ? call.bytes : 0;
      host += call.name == "cuMemHostAlloc" ? call.bytes : 0;
    }
    EXPECT_EQ(device, size.deviceBytes) << follows;
    EXPECT_EQ(host, size.hostBytes) << follows;
    EXPECT_EQ(made->room().partials, size.room.partials);
  }
}

TEST_F(GpuRoomTest, MoreNeedsMoreAndNothingNeedsLittle) {
  const auto none = roomFor(attention_, 0, 0, 0).value(), few = roomFor(attention_, 8, 8, 1000).value(),
             many = roomFor(attention_, 256, 256, 100'000).value(),
             chunks = roomFor(attention_, 256, 4096, 100'000).value();
  EXPECT_LT(none.deviceBytes, few.deviceBytes);
  EXPECT_LT(few.deviceBytes, many.deviceBytes);
  EXPECT_LT(many.deviceBytes, chunks.deviceBytes);
  EXPECT_LT(many.room.runs, chunks.room.runs);
  EXPECT_EQ(roomFor(attention_, -1, 0, 0).error().message, "requests is -1, not between 0 and 8388608");
  EXPECT_THAT(roomFor(attention_, 0, -1, 0).error().message, HasSubstr("queries is -1"));
  EXPECT_THAT(roomFor(attention_, 0, 0, -1).error().message, HasSubstr("tokens is -1"));
}

} // namespace
} // namespace deft
