// The library on GPUs, as a program sees it. `libcuda.so.1` is the tests' driver, whose memory is the host's.
#include "tests/support/FakeCuda.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <climits>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

// What a program does with a driver of its own accord.
extern "C" {
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuGraphLaunch(void *executable, void *stream);
int cuCtxGetCurrent(void **context);
}

namespace deft {
namespace {

using ::testing::HasSubstr;

constexpr int kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64, kPageSize = 16, kPages = 64, kMostQueries = 32;

float fromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
std::uint16_t toBf16(float value) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000u) >> 16);
}

/// 16-byte aligned, as memory of a GPU is.
class Memory {
public:
  explicit Memory(std::size_t count) : values_(count + 8) {}
  std::uint16_t *data() {
    const auto address = reinterpret_cast<std::uintptr_t>(values_.data());
    return values_.data() + (16 - address % 16) % 16 / 2;
  }

private:
  std::vector<std::uint16_t> values_;
};

class GpuTest : public testing::Test {
protected:
  GpuTest()
      : q_(kMostQueries * kQueryHeads * kHeadDim), k_(kPages * kPageSize * kKvHeads * kHeadDim),
        v_(kPages * kPageSize * kKvHeads * kHeadDim), out_(kMostQueries * kQueryHeads * kHeadDim),
        lse_(kMostQueries * kQueryHeads) {
    fake_cuda::setVariant({kQueryHeads, kKvHeads, kHeadDim, kPageSize, true, 0.25f});
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Memory *memory : {&k_, &v_})
      for (int i = 0; i < kPages * kPageSize * kKvHeads * kHeadDim; ++i)
        memory->data()[i] = toBf16(normal(random));
    for (int i = 0; i < kMostQueries * kQueryHeads * kHeadDim; ++i)
      q_.data()[i] = toBf16(normal(random));
    EXPECT_EQ(cuStreamCreate(&stream_, 1), 0);
    const int prompt = sequences_.addRoot(70).value();
    for (int i = 0; i < 5; ++i)
      leaves_.push_back(sequences_.addChild(prompt, 3 + 7 * i).value());
    std::vector<Query> queries;
    for (const int leaf : leaves_)
      queries.push_back({leaf});
    sequences_.setQueries(queries).value();
  }

  GpuInputs inputs() { return {.q = q_.data(), .k = k_.data(), .v = v_.data(), .pageTable = table_.data()}; }
  GpuOutputs outputs() { return {.out = out_.data(), .lse = lse_.data()}; }
  const Tree &tree() const { return sequences_.tree(); }

  Result<void> uploadAndRun(GpuPlan &plan) {
    if (auto uploaded = table_.upload(sequences_, stream_); !uploaded)
      return uploaded;
    if (auto uploaded = plan.upload(stream_); !uploaded)
      return uploaded;
    return plan.run(attention_, inputs(), outputs(), stream_);
  }

  /// A run of the plan as a graph.
  void capture(GpuPlan &plan, void *&executable) {
    void *graph = nullptr;
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
    const auto captured = plan.run(attention_, inputs(), outputs(), stream_);
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
    ASSERT_TRUE(captured) << captured.error().text();
    ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  }

  /// Every row against its sequence, token by token, and so many more behind it in its page; forgets the
  /// outputs.
  bool isRight(const std::vector<int> &more = std::vector<int>(kMostQueries)) {
    bool allRight = true;
    for (int query = 0; query < tree().queryCount(); ++query)
      for (int head = 0; head < kQueryHeads; ++head)
        allRight = isRowRight(query, head, more[static_cast<std::size_t>(query)]) && allRight;
    std::fill_n(out_.data(), kMostQueries * kQueryHeads * kHeadDim, std::uint16_t{0xffff});
    return allRight;
  }

  std::int64_t lastSlot(int query) {
    const int node = tree().query(query).node;
    return sequences_.slot(node, tree().node(node).tokens - 1);
  }

  bool isRowRight(int query, int head, int more) {
    std::vector<std::int64_t> slots;
    for (int i = 1; i <= more; ++i)
      slots.push_back(lastSlot(query) + i);
    for (int node = tree().query(query).node; node >= 0; node = tree().node(node).parent)
      for (int i = 0; i < tree().node(node).tokens; ++i)
        slots.push_back(sequences_.slot(node, i));
    const auto *q = q_.data() + (query * kQueryHeads + head) * kHeadDim;
    const auto at = [&](std::int64_t slot) {
      return (slot * kKvHeads + head / (kQueryHeads / kKvHeads)) * kHeadDim;
    };
    std::vector<double> sum(kHeadDim);
    double weights = 0;
    for (const std::int64_t slot : slots) {
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += static_cast<double>(fromBf16(q[d])) * fromBf16(k_.data()[at(slot) + d]);
      const double weight = std::exp(0.25 * score);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sum[static_cast<std::size_t>(d)] += weight * fromBf16(v_.data()[at(slot) + d]);
    }
    const int row = query * kQueryHeads + head;
    if (!(std::abs(lse_[static_cast<std::size_t>(row)] - std::log(weights)) < 1e-3))
      return false;
    for (int d = 0; d < kHeadDim; ++d) {
      const double exact = sum[static_cast<std::size_t>(d)] / weights;
      if (!(std::abs(fromBf16(out_.data()[row * kHeadDim + d]) - exact) < 0.01 + 0.01 * std::abs(exact)))
        return false;
    }
    return true;
  }

  Memory q_, k_, v_, out_;
  std::vector<float> lse_;
  SequenceTree sequences_ = SequenceTree::make({kPageSize, kPages}).value();
  std::vector<int> leaves_;
  Gpu gpu_ = Gpu::open(0).value();
  GpuAttention attention_ = GpuAttention::load(gpu_, loadPackage(DEFT_TEST_GPU_PACKAGE).value()).value();
  GpuPageTable table_ = GpuPageTable::make(gpu_, 4 * kPages).value();
  void *stream_ = nullptr;
};

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

// The host adds tokens to its tree only when their page is full, or the slack ends.
TEST_F(GpuTest, AGraphFollowsLengthsThatOnlyTheDeviceHas) {
  auto made = GpuPlan::make(attention_, tree(), {.followsLengths = true});
  if (!made && made.error().code == ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made) << made.error().text();
  GpuPlan &plan = *made;
  plan.reserve({.queries = kMostQueries, .items = 200, .runs = 400, .partials = 400}).value();
  std::vector<int> lengths(kMostQueries);
  void *graph = nullptr, *executable = nullptr;
  table_.upload(sequences_, stream_).value();
  plan.upload(stream_).value();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 1), 0);
  ASSERT_TRUE(plan.follow(lengths.data(), stream_));
  ASSERT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);

  const auto planned = [&](int query) {
    int length = 0;
    for (int node = tree().query(query).node; node >= 0; node = tree().node(node).parent)
      length += tree().node(node).tokens;
    return length;
  };
  std::mt19937 random(9);
  std::vector<int> more(kMostQueries);
  for (int step = 0; step < 60; ++step) {
    if (step % 6 == 5) { // the host's tree catches up, for a plan of another generation
      for (const int leaf : leaves_)
        (void)sequences_.append(leaf, 1 + static_cast<int>(random() % 3)).value();
      plan.advance(tree()).value();
      table_.upload(sequences_, stream_).value();
      plan.upload(stream_).value();
    }
    for (int query = 0; query < tree().queryCount(); ++query) {
      const auto leftInPage = static_cast<unsigned>(kPageSize - 1 - lastSlot(query) % kPageSize);
      const auto i = static_cast<std::size_t>(query);
      more[i] = static_cast<int>(random() % (leftInPage + 1));
      lengths[i] = planned(query) + more[i];
    }
    ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
    EXPECT_TRUE(plan.checkReplays());
    ASSERT_TRUE(isRight(more)) << "step " << step;
  }
  lengths[2] = planned(2) + 17;
  ASSERT_EQ(cuGraphLaunch(executable, stream_), 0);
  const auto noticed = plan.checkReplays();
  ASSERT_FALSE(noticed);
  EXPECT_THAT(noticed.error().message, HasSubstr("request 2 had"));
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
  EXPECT_EQ(message(in, outputs()), "GpuInputs::q is null");
  in = inputs();
  in.v = nullptr;
  EXPECT_EQ(message(in, outputs()), "GpuInputs::v is null");
  in = inputs();
  in.pageTable = nullptr;
  EXPECT_THAT(message(in, outputs()), HasSubstr("GpuInputs::pageTable is null"));
  in = inputs();
  in.k = static_cast<const char *>(in.k) + 4;
  EXPECT_EQ(message(in, outputs()), "k does not begin at a multiple of 16 bytes");
  EXPECT_EQ(message(inputs(), {}), "GpuOutputs::out is null");
  (void)sequences_.append(leaves_[0]).value();
  EXPECT_THAT(message(inputs(), outputs()), HasSubstr("stale"));
  EXPECT_FALSE(plan.isCurrent());
  EXPECT_TRUE(fake_cuda::takeCalls().empty());
}

TEST_F(GpuTest, NumbersThatMeanNothingAreErrors) {
  const auto error = [](const auto &result) { return result ? "none" : result.error().message; };
  for (const int index : {-1, 99, INT_MIN})
    EXPECT_THAT(error(Gpu::open(index)), HasSubstr("there is no GPU " + std::to_string(index)));
  EXPECT_THAT(error(GpuPageTable::make(attention_.gpu(), -1)), HasSubstr("-1 pages"));
  EXPECT_THAT(error(GpuPlan::make(attention_, tree(), {.runsAhead = -1})), HasSubstr("-1 runs ahead"));
  EXPECT_EQ(error(GpuPlan::make(attention_, tree(), {.plan = {.partition = static_cast<Partition>(99)}})),
            "PlanOptions::partition is 99, not between 0 and 7");
  auto plan = GpuPlan::make(attention_, tree()).value();
  const GpuRoom room = plan.room();
  EXPECT_EQ(error(plan.reserve({.queries = -1})), "GpuRoom::queries is -1, not between 0 and 268435456");
  EXPECT_THAT(error(plan.reserve({.items = INT_MAX})), HasSubstr("GpuRoom::items is 2147483647"));
  EXPECT_THAT(error(plan.reserve({.runs = INT_MIN})), HasSubstr("GpuRoom::runs is "));
  EXPECT_THAT(error(plan.reserve({.partials = -5})), HasSubstr("GpuRoom::partials is -5"));
  EXPECT_EQ(plan.room().items, room.items);
  plan.upload(stream_).value();
  GpuInputs in = inputs();
  in.strides = CacheStrides{.page = 2048, .token = -128, .head = 64};
  EXPECT_EQ(error(plan.run(attention_, in, outputs(), stream_)), "CacheStrides::token is -128, less than 0");
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
  other.addQuery(other.addRoot(20).value()).value();
  ASSERT_EQ(plan.advance(other).value(), Advanced::Remade);
  const auto early = plan.run(attention_, inputs(), outputs(), stream_);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("not been uploaded"));
  (void)sequences_.append(leaves_[0]).value(); // the former tree is nobody's business now
  plan.upload(stream_).value();
  EXPECT_TRUE(plan.run(attention_, inputs(), outputs(), stream_));
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

TEST_F(GpuTest, APackageWithoutNativeCodeRunsOnGpusAlone) {
  const Attention attention = loadPackage(DEFT_TEST_GPU_PACKAGE).value();
  EXPECT_EQ(attention.headDim(), kHeadDim);
  Tree small;
  small.addQuery(small.addRoot(1).value()).value();
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
