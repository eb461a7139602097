// The library on GPUs, as a program sees it. `libcuda.so.1` is the tests' driver.
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/api/GpuFixture.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>

#include <climits>
#include <fstream>
#include <thread>

namespace deft {
namespace {

using ::testing::HasSubstr;

TEST_F(GpuTest, ListsWhatTheDriverShows) {
  const auto all = Gpu::list().value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "Fake Hopper");
  EXPECT_EQ(all[0].architecture, "sm_90a");
  EXPECT_EQ(all[1].architecture, "sm_80");
  EXPECT_EQ(all[2].architecture, "");
  EXPECT_EQ(gpu_.facts().multiprocessors, 132);
}

TEST_F(GpuTest, AGpuThatIsTooOldOrNotThereIsAnError) {
  const auto old = Gpu::open(2);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, ErrorCode::Environment);
  EXPECT_EQ(old.error().message, "Fake Turing has compute capability 7.5, 8.0 or newer is needed");
  const auto none = Gpu::open(7);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Usage);
}

TEST_F(GpuTest, StepsOfADecodeLoopAreRight) {
  // What a pool places never overlaps.
  auto plan = GpuPlan::make(attention_, tree(), {.plan = {.checkPlaces = true}}).value();
  int inPlace = 0;
  for (int step = 0; step < 12; ++step) {
    if (step == 6)
      sequences_.prune(leaves_.back()).value(), leaves_.pop_back();
    for (const int leaf : leaves_)
      EXPECT_TRUE(sequences_.append(leaf).value().empty());
    inPlace += plan.advance(tree()).value() == Advanced::InPlace;
    const auto ran = uploadAndRun(plan);
    ASSERT_TRUE(ran) << ran.error().text();
    ASSERT_TRUE(isRight()) << "step " << step;
  }
  EXPECT_GE(inPlace, 10);
  EXPECT_EQ(plan.advance(tree()).value(), Advanced::Nothing);
}

TEST_F(GpuTest, PlacesAreCheckedWhereAskedFor) {
  Tree tree;
  const int root = tree.addRoot(5, 0).value(), leaf = tree.addChild(root, 3, 4).value();
  ASSERT_TRUE(tree.addQuery(leaf));
  const GpuPlanOptions options{.plan = {.checkPlaces = true}};
  const auto refused = GpuPlan::make(attention_, tree, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("node 0 has slots 0 to 4, node 1 has slots 4 to 6"));
  ASSERT_TRUE(tree.place(leaf, 5));
  auto plan = GpuPlan::make(attention_, tree, options);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_TRUE(tree.place(leaf, 4));
  EXPECT_FALSE(plan->advance(tree));
  EXPECT_FALSE(plan->isCurrent());
}

TEST_F(GpuTest, PagesThatTheCacheLacksAreToldWhereAskedFor) {
  auto made = GpuPlan::make(attention_, tree(), {.checksPages = true});
  if (!made && made.error().code == ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made) << made.error().text();
  GpuPlan &plan = *made;
  const auto unsaid = uploadAndRun(plan);
  ASSERT_FALSE(unsaid);
  EXPECT_EQ(unsaid.error().message, "k has an unknown number of pages, but the plan checks pages");
  GpuInputs given = inputs();
  given.cachePages = -1;
  EXPECT_THAT(plan.run(attention_, given, outputs(), stream_).error().message, HasSubstr("k is [-2, "));
  given.cachePages = kPages;
  ASSERT_TRUE(plan.run(attention_, given, outputs(), stream_));
  EXPECT_TRUE(plan.checkReplays());
  EXPECT_TRUE(isRight());
  given.cachePages = 2;
  ASSERT_TRUE(plan.run(attention_, given, outputs(), stream_));
  EXPECT_THAT(plan.checkReplays().error().message, HasSubstr("and the cache has 2 pages"));
  EXPECT_TRUE(plan.checkReplays());
}

TEST_F(GpuTest, AGraphFollowsTheTree) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  plan.reserve({.queries = kMostQueries, .items = 200, .runs = 400, .partials = 400}).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  void *executable = nullptr;
  ASSERT_NO_FATAL_FAILURE(capture(plan, executable));
  for (int step = 0; step < 8; ++step) {
    if (step == 4)
      sequences_.addQuery(0).value(); // another structure
    for (const int leaf : leaves_)
      (void)sequences_.append(leaf).value();
    plan.advance(tree()).value();
    table_.upload(sequences_, stream_).value();
    plan.upload(stream_).value();
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    ASSERT_TRUE(isRight()) << "step " << step;
    EXPECT_TRUE(plan.checkReplays());
  }
  (void)sequences_.append(leaves_[0]).value();
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  const auto stale = plan.checkReplays();
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::Usage);
  EXPECT_THAT(stale.error().message, HasSubstr("stale plan"));

  const auto late = plan.reserve({.queries = 1000});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("fixed"));
  for (int i = 0; i < kMostQueries; ++i)
    sequences_.addQuery(0).value();
  const auto tooLarge = plan.advance(tree());
  ASSERT_FALSE(tooLarge);
  EXPECT_EQ(tooLarge.error().message, "the plan has 38 queries, there is room for 32");
  EXPECT_FALSE(plan.isCurrent());
}

/// `auto` may cut another tree in another way, into more than a graph has room for.
TEST_F(GpuTest, AGraphWithoutRoomForANewCutKeepsTheFormerOne) {
  sequences_ = SequenceTree::make({kPageSize, kPages}).value();
  const int prompt = sequences_.addRoot(68).value();
  leaves_.clear();
  for (const int tokens : {70, 64, 96, 96, 102})
    leaves_.push_back(sequences_.addChild(prompt, tokens).value());
  std::vector<Query> queries;
  for (const int leaf : leaves_)
    queries.push_back({leaf});
  sequences_.setQueries(queries).value();
  const GpuPlanOptions options{.plan = {.partition = Partition::Auto}};
  auto plan = GpuPlan::make(attention_, tree(), options).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  void *executable = nullptr;
  ASSERT_NO_FATAL_FAILURE(capture(plan, executable));

  sequences_.prune(leaves_.back()).value();
  leaves_.pop_back();
  sequences_.append(leaves_[0], 60).value();
  const PlanSummary fresh = GpuPlan::make(attention_, tree(), options).value().summary();
  ASSERT_GT(fresh.partials, plan.room().partials); // or this tree tests nothing
  const auto advanced = plan.advance(tree());
  ASSERT_TRUE(advanced) << advanced.error().text();
  EXPECT_EQ(*advanced, Advanced::Remade);
  EXPECT_LE(plan.summary().partials, plan.room().partials);
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  EXPECT_TRUE(isRight());
  EXPECT_TRUE(plan.checkReplays());
}

/// Whole pages come first, which takes more runs than paths do.
TEST_F(GpuTest, AGraphWithoutRoomForWholePagesReadsPathsAsTheyAre) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("pages.json");
  std::ofstream(path) << R"({"partition": "union", "chunk_tokens": 16384, "phases": [
    {"name": "tiles", "rows_above": -1, "family": "sm90", "tile_q": 64, "tile_kv": 64, "stages": 2,
     "warps": 8}]})";
  const test::SetVariable configs("DEFT_CONFIG_PATH", path);
  attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  sequences_ = SequenceTree::make({kPageSize, kPages}).value();
  const int prompt = sequences_.addRoot(37).value();
  leaves_ = {sequences_.addChild(prompt, 3).value()};
  sequences_.setQueries(std::vector<Query>{{leaves_[0]}}).value();
  auto plan = GpuPlan::make(attention_, tree()).value();
  plan.reserve({.queries = kMostQueries, .items = 8}).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  void *executable = nullptr;
  ASSERT_NO_FATAL_FAILURE(capture(plan, executable));

  std::vector<Query> queries;
  for (int i = 0; i < 16; ++i) {
    leaves_.push_back(sequences_.addChild(prompt, 19).value());
    queries.push_back({leaves_.back()});
  }
  sequences_.setQueries(queries).value();
  ASSERT_GT(GpuPlan::make(attention_, tree()).value().room().runs, 2 * plan.room().runs);
  const auto advanced = plan.advance(tree());
  ASSERT_TRUE(advanced) << advanced.error().text();
  EXPECT_THAT(plan.choice().why, HasSubstr("the room of a captured graph"));
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  EXPECT_TRUE(isRight());
  EXPECT_TRUE(plan.checkReplays());
}

/// Tokens in turn are in more runs than those of paths, and the more the longer leaves are.
TEST_F(GpuTest, AGraphWithoutRoomForTokensInTurnHasThemFromTheRoot) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("mixed.json");
  std::ofstream(path) << R"({"partition": "union", "chunk_tokens": 16384, "order": "mixed", "phases": [
    {"name": "tiles", "rows_above": -1, "family": "sm90", "tile_q": 64, "tile_kv": 64, "stages": 2,
     "warps": 8}]})";
  const test::SetVariable configs("DEFT_CONFIG_PATH", path);
  attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  sequences_ = SequenceTree::make({kPageSize, 64 * kPages}).value();
  const int prompt = sequences_.addRoot(4000).value();
  leaves_.clear();
  std::vector<Query> queries;
  for (int i = 0; i < 12; ++i) {
    leaves_.push_back(sequences_.addChild(prompt, 1).value());
    queries.push_back({leaves_.back()});
  }
  sequences_.setQueries(queries).value();
  table_ = GpuPageTable::make(gpu_, 64 * kPages).value();
  k_ = Memory(64 * kPages * kPageSize * kKvHeads * kHeadDim);
  v_ = Memory(64 * kPages * kPageSize * kKvHeads * kHeadDim);
  for (int i = 0; i < 64 * kPages * kPageSize * kKvHeads * kHeadDim; ++i) {
    k_.data()[i] = toBf16(static_cast<float>(i * 7 % 11) / 8);
    v_.data()[i] = toBf16(static_cast<float>(i * 5 % 13) / 8);
  }
  auto plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_EQ(plan.choice().rule, "override");
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  void *executable = nullptr;
  ASSERT_NO_FATAL_FAILURE(capture(plan, executable));

  for (const int leaf : leaves_)
    (void)sequences_.append(leaf, 300).value();
  ASSERT_GT(GpuPlan::make(attention_, tree()).value().room().runs,
            2 * plan.room().runs); // or this tests nothing
  const auto advanced = plan.advance(tree());
  ASSERT_TRUE(advanced) << advanced.error().text();
  EXPECT_EQ(*advanced, Advanced::Remade);
  EXPECT_THAT(plan.choice().why, HasSubstr("the room of a captured graph"));
  EXPECT_THAT(GpuPlan::make(attention_, tree())->choice().why, Not(HasSubstr("captured")));
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  EXPECT_TRUE(isRight());
  EXPECT_TRUE(plan.checkReplays());
  for (const int leaf : leaves_)
    (void)sequences_.append(leaf).value();
  EXPECT_EQ(plan.advance(tree()).value(), Advanced::InPlace);
}

TEST_F(GpuTest, WrongCallsAreErrorsBeforeAnythingIsEnqueued) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  plan.upload(stream_).value();
  (void)fake_cuda::takeCalls();
  const auto message = [&](const GpuInputs &in, const GpuOutputs &out) {
    const auto ran = plan.run(attention_, in, out, stream_);
    EXPECT_FALSE(ran);
    return ran ? std::string() : ran.error().message;
  };
  GpuInputs in = inputs();
  in.q = nullptr;
  EXPECT_EQ(message(in, outputs()), "q is null");
  in = inputs();
  in.v = nullptr;
  EXPECT_EQ(message(in, outputs()), "v is null");
  in = inputs();
  in.pageTable = nullptr;
  EXPECT_THAT(message(in, outputs()), HasSubstr("pageTable is null"));
  in = inputs();
  in.k = static_cast<const char *>(in.k) + 4;
  EXPECT_EQ(message(in, outputs()), "k does not begin at a multiple of 16 bytes");
  EXPECT_EQ(message(inputs(), {}), "out is null");
  (void)sequences_.append(leaves_[0]).value();
  EXPECT_THAT(message(inputs(), outputs()), HasSubstr("stale"));
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_TRUE(fake_cuda::takeCalls().empty());
}

TEST_F(GpuTest, NumbersThatMeanNothingAreErrors) {
  const auto error = [](const auto &result) { return result ? "none" : result.error().message; };
  for (const int index : {-1, 99, INT_MIN})
    EXPECT_THAT(error(Gpu::open(index)), HasSubstr("there is no GPU " + std::to_string(index)));
  EXPECT_THAT(error(GpuPageTable::make(attention_.gpu(), -1)), HasSubstr("pages is -1"));
  EXPECT_THAT(error(GpuPlan::make(attention_, tree(), {.runsAhead = -1})),
              HasSubstr("GpuPlanOptions::runsAhead is -1"));
  EXPECT_EQ(error(GpuPlan::make(attention_, tree(), {.plan = {.partition = static_cast<Partition>(99)}})),
            "PlanOptions::partition is 99, not between 0 and 8");
  auto plan = GpuPlan::make(attention_, tree()).value();
  const GpuRoom room = plan.room();
  EXPECT_EQ(error(plan.reserve({.queries = -1})), "GpuRoom::queries is -1, not between 0 and 268435456");
  EXPECT_THAT(error(plan.reserve({.items = INT_MAX})), HasSubstr("GpuRoom::items is 2147483647"));
  EXPECT_THAT(error(plan.reserve({.runs = INT_MIN})), HasSubstr("GpuRoom::runs is "));
  EXPECT_THAT(error(plan.reserve({.partials = -5})), HasSubstr("GpuRoom::partials is -5"));
  EXPECT_THAT(error(plan.reserve({.items = 1 << 27})),
              HasSubstr(" items of 32 threads is for more than the 2130706431 that kernels count"));
  EXPECT_EQ(plan.room().items, room.items);
  EXPECT_TRUE(plan.isCurrent());
  plan.upload(stream_).value();
  GpuInputs in = inputs();
  in.strides = CacheStrides{.page = 2048, .token = -128, .head = 64};
  EXPECT_EQ(error(plan.run(attention_, in, outputs(), stream_)),
            "k has strides [2048, -128, 64, 1], none may be less than 0");
  in = inputs();
  in.qStride = 100;
  EXPECT_THAT(error(plan.run(attention_, in, outputs(), stream_)), HasSubstr("has strides [100, 64, 1]"));
  in.qStride = 264;
  EXPECT_EQ(error(plan.run(attention_, in, outputs(), stream_)),
            "the row stride of q is 264 elements, not a multiple of 16");
  GpuOutputs to = outputs();
  to.outStride = -1;
  EXPECT_THAT(error(plan.run(attention_, inputs(), to, stream_)), HasSubstr("has strides [-1, 64, 1]"));
}

/// As an engine has them: q, K and V of a query in one row, K and V of a token side by side, and V's pages
/// with the tokens of a head together.
TEST_F(GpuTest, RowsAndCachesMayBeApart) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_TRUE(uploadAndRun(plan));
  constexpr int kRow = kQueryHeads * kHeadDim, kWide = 2 * kRow, kTokens = kPages * kPageSize;
  const int queries = tree().queryCount();
  const std::vector<std::uint16_t> packed(out_.data(), out_.data() + queries * kRow);
  Memory q(static_cast<std::size_t>(queries * kWide)), out(static_cast<std::size_t>(queries * kWide)),
      pool(kTokens * kKvHeads * 2 * kHeadDim), v(kTokens * kKvHeads * kHeadDim);
  for (int query = 0; query < queries; ++query)
    std::copy_n(q_.data() + query * kRow, kRow, q.data() + query * kWide);
  for (int token = 0; token < kTokens; ++token)
    for (int head = 0; head < kKvHeads; ++head) {
      const int row = token * kKvHeads + head, page = token / kPageSize, slot = token % kPageSize;
      std::copy_n(k_.data() + row * kHeadDim, kHeadDim, pool.data() + row * 2 * kHeadDim);
      std::copy_n(v_.data() + row * kHeadDim, kHeadDim, pool.data() + (row * 2 + 1) * kHeadDim);
      std::copy_n(v_.data() + row * kHeadDim, kHeadDim,
                  v.data() + ((page * kKvHeads + head) * kPageSize + slot) * kHeadDim);
    }
  constexpr int kTokenRow = kKvHeads * 2 * kHeadDim;
  GpuInputs in = inputs();
  in.q = q.data();
  in.qStride = kWide;
  in.k = pool.data();
  in.strides = CacheStrides{.page = kPageSize * kTokenRow, .token = kTokenRow, .head = 2 * kHeadDim};
  const auto isSame = [&] {
    std::fill_n(out.data(), queries * kWide, std::uint16_t{0x1234});
    EXPECT_TRUE(plan.run(attention_, in, {.out = out.data(), .outStride = kWide}, stream_));
    for (int i = 0; i < queries * kWide; ++i)
      if (out.data()[i] !=
          (i % kWide < kRow ? packed[static_cast<std::size_t>(i / kWide * kRow + i % kWide)] : 0x1234))
        return false;
    return true;
  };
  in.v = pool.data() + kHeadDim; // beside K
  EXPECT_TRUE(isSame());
  in.v = v.data();
  in.vStrides =
      CacheStrides{.page = kPageSize * kKvHeads * kHeadDim, .token = kHeadDim, .head = kPageSize * kHeadDim};
  EXPECT_TRUE(isSame());
}

TEST_F(GpuTest, APlanWithoutMemoryTakesNoStepAndRecovers) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  int most = 100'000;
  constexpr int kOutOfMemory = 2;
  for (const char *const function : {"cuMemHostAlloc", "cuMemAlloc"}) {
    fake_cuda::failAt(function, kOutOfMemory);
    EXPECT_THAT(
        plan.reserve({.queries = ++most, .items = most, .runs = most, .partials = most}).error().message,
        HasSubstr("cannot "));
    // Its memory is gone, and so is its room: the next plan asks for both again.
    (void)sequences_.append(leaves_[0]).value();
    EXPECT_FALSE(plan.advance(tree()));
    EXPECT_FALSE(uploadAndRun(plan));
    fake_cuda::failAt(function, 0);
    EXPECT_TRUE(plan.advance(tree()));
    EXPECT_TRUE(uploadAndRun(plan));
    EXPECT_TRUE(isRight());
  }
}

TEST_F(GpuTest, APlanOfAnotherTreeIsNotTakenForThisOnes) {
  auto plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_TRUE(uploadAndRun(plan));
  Tree other;
  other.addQuery(other.addRoot(20, 0).value()).value();
  ASSERT_EQ(plan.advance(other).value(), Advanced::Remade);
  const auto early = plan.run(attention_, inputs(), outputs(), stream_);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("not been uploaded"));
  (void)sequences_.append(leaves_[0]).value(); // the former tree is nobody's business now
  plan.upload(stream_).value();
  EXPECT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
}

// What a run wrote and a state of no tokens, merged elsewhere.
TEST_F(GpuTest, StatesAreMergedOnTheStreamAndInACapture) {
  const auto merge = GpuStateMerge::load(gpu_, StateType::BF16);
  if (!merge && merge.error().code == ErrorCode::Environment)
    GTEST_SKIP() << merge.error().message;
  ASSERT_TRUE(merge) << merge.error().text();
  auto plan = GpuPlan::make(attention_, tree()).value();
  ASSERT_TRUE(uploadAndRun(plan));
  const StateShape shape{.rows = tree().queryCount() * kQueryHeads, .dim = kHeadDim};
  const std::vector<float> nothing(lse_.size(), -INFINITY);
  Memory unread(kMostQueries * kQueryHeads * kHeadDim);
  const State states[] = {{unread.data(), nothing.data()}, {out_.data(), lse_.data()}};
  Memory merged(kMostQueries * kQueryHeads * kHeadDim);
  std::vector<float> mergedLse(lse_.size());
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  const auto captured = merge->run(shape, states, {merged.data(), mergedLse.data()}, stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_TRUE(captured) << captured.error().text();
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  std::copy_n(merged.data(), shape.rows * kHeadDim, out_.data());
  std::copy_n(mergedLse.data(), shape.rows, lse_.data());
  EXPECT_TRUE(isRight());

  const auto error = [&](const StateShape &of, const void *out) {
    const State one[] = {{out, lse_.data()}};
    const auto ran = merge->run(of, one, {out_.data(), lse_.data()}, stream_);
    return ran ? "none" : ran.error().message;
  };
  EXPECT_EQ(error({.rows = 1, .dim = 60}, out_.data()),
            "to.out has a head_dim of 60, which is not a multiple of 8");
  EXPECT_EQ(error({.rows = 1, .dim = 64}, out_.data() + 1),
            "states[0].out does not begin at a multiple of 16 bytes");
  EXPECT_EQ(error({.rows = 1, .dim = 64, .type = StateType::F32}, out_.data()),
            "states[0].out is float32, the merge takes bfloat16");
}

TEST_F(GpuTest, ThreadsWithTheirOwnPlansAndDevices) {
  const GpuAttention second =
      GpuAttention::load(Gpu::open(1).value(), loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  table_.upload(sequences_, stream_).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const GpuAttention &attention = i % 2 ? second : attention_;
      void *stream = nullptr;
      EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
      Memory out(kMostQueries * kQueryHeads * kHeadDim);
      for (int round = 0; round < 5; ++round) {
        auto plan = GpuPlan::make(attention, tree()).value();
        plan.upload(stream).value();
        plan.run(attention, inputs(), {.out = out.data()}, stream).value();
      }
      void *context = nullptr;
      EXPECT_EQ(cuCtxGetCurrent(&context), 0);
      EXPECT_EQ(context, nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(GpuTest, AnArrayOverTokensHasAValueForEachSlotOfTheCache) {
  const auto compiled = compileSpec(
      "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = paged(page_size = 16);"
      "  output = bf16 with lse; param gain : f32[tokens]; score = s + gain[token]; }");
  if (!compiled)
    GTEST_SKIP() << compiled.error().text(); // without the compiler
  const std::vector<float> gain(kPages * kPageSize - 1);
  Params params(*compiled);
  params.set("gain", std::span(gain)).value();
  const auto loaded = GpuAttention::load(gpu_, *compiled, {.params = &params});
  if (!loaded)
    GTEST_SKIP() << loaded.error().text(); // without NVRTC
  GpuPlan plan = GpuPlan::make(*loaded, tree()).value();
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  GpuInputs given = inputs();
  const auto unsaid = plan.run(*loaded, given, outputs(), stream_);
  ASSERT_FALSE(unsaid);
  EXPECT_EQ(unsaid.error().message, "k has an unknown number of pages, but `a` has an array over tokens");
  given.cachePages = kPages;
  const auto tooShort = plan.run(*loaded, given, outputs(), stream_);
  ASSERT_FALSE(tooShort);
  EXPECT_EQ(tooShort.error().message,
            "parameter `gain` (f32[tokens]) has 1023 values, the cache has 1024 slots");
  given.cachePages = std::int64_t{1} << 62; // of which the slots are beyond 64 bits
  const auto absurd = plan.run(*loaded, given, outputs(), stream_);
  ASSERT_FALSE(absurd);
  EXPECT_THAT(absurd.error().message, HasSubstr("has 1023 values, the cache has "));
}

TEST_F(GpuTest, APackageWithoutNativeCodeRunsOnGpusAlone) {
  const Attention attention = loadPackage(DEFT_TEST_GPU_PACKAGE).value();
  EXPECT_EQ(attention.headDim(), kHeadDim);
  Tree small;
  small.addQuery(small.addRoot(1, 0).value()).value();
  const int table[] = {0};
  const auto ran = Runtime::create().value().run(
      attention, Plan::make(attention, small).value(),
      {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = table}, {.out = out_.data()});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::Environment);
  EXPECT_THAT(ran.error().message, HasSubstr("holds no code for this processor"));
}

} // namespace
} // namespace deft
