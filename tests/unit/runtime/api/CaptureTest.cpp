// Captured steps of programs on processors; what they hold, and what they do not.
#include "runtime/capture/StepFile.h"
#include "runtime/capture/StepTree.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <deft/deft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace deft {
namespace {

using module_cache::namesIn;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint16_t kOne = 0x3f80; // in bf16

/// Two branches of a prompt whose tokens all have the value 1.
class CaptureApiTest : public testing::Test {
protected:
  CaptureApiTest() {
    const int root = tree_.addRoot(40, 0).value();
    for (const int location : {40, 64}) {
      leaves_.push_back(tree_.addChild(root, 6, location).value());
      (void)tree_.addQuery(leaves_.back()).value();
    }
    q_.assign(std::size_t{2} * 4 * 64, kOne);
    k_.assign(std::size_t{10} * 16 * 2 * 64, kOne);
    out_.assign(q_.size(), 0);
  }
  ~CaptureApiTest() override { stopCapture(); }

  void start(CaptureWhat what = CaptureWhat::Host) {
    startCapture({.folder = folder_.path("steps"), .what = what}).value();
  }
  void run(const Plan &plan) {
    const Inputs inputs{.q = q_.data(), .k = k_.data(), .v = k_.data(), .pageTable = table_};
    runtime_.run(attention_, plan, inputs, {.out = out_.data()}).value();
  }
  /// Files of steps, in order.
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const std::string &name : namesIn(folder_.path("steps")))
      if (name.ends_with(".json"))
        paths.push_back(folder_.path("steps/" + name));
    return paths;
  }

  module_cache::TestFolder folder_;
  Attention attention_ = loadPackage(DEFT_TEST_PACKAGE).value();
  Runtime runtime_ = Runtime::create({.threads = 2}).value();
  Tree tree_;
  std::vector<int> leaves_, table_ = {3, 1, 5, 2, 9};
  std::vector<std::uint16_t> q_, k_, out_;
};

TEST_F(CaptureApiTest, AStepIsWrittenOnceForAllItsLayers) {
  start();
  auto plan = Plan::make(attention_, tree_).value();
  for (int layer = 0; layer < 3; ++layer)
    run(plan);
  ASSERT_EQ(files().size(), 1u);
  const auto step = capture::readStep(files()[0]);
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->version, version());
  EXPECT_TRUE(step->isPackaged);
  EXPECT_EQ(step->attention, attention_.name());
  EXPECT_EQ(step->device.kind, config::DeviceKind::Cpu);
  EXPECT_EQ(step->pageSize, 16);
  EXPECT_THAT(*step->pageTable, ElementsAre(capture::PageStretch{0, 3, 1}, capture::PageStretch{1, 1, 1},
                                            capture::PageStretch{2, 5, 1}, capture::PageStretch{4, 9, 1}));
  EXPECT_EQ(step->tree.nodes()[2].location, 64);
  EXPECT_EQ(step->run->qStride, 256);
  EXPECT_EQ(step->plan.items, plan.summary().items);
  EXPECT_EQ(step->reason.rule, plan.choice().rule);
  EXPECT_GT(*step->runUs, 0);
  EXPECT_GT(*step->planUs, 0);
  EXPECT_EQ(step->tensors, "");
  const CaptureState state = captureState();
  EXPECT_EQ(state.steps, 1);
  EXPECT_TRUE(state.isOn);
  EXPECT_EQ(state.bytes, static_cast<std::int64_t>(std::filesystem::file_size(files()[0])));
}

TEST_F(CaptureApiTest, StepsOfAPlanAreTheFirstFourAndPowersOfTwo) {
  start();
  auto plan = Plan::make(attention_, tree_).value();
  for (int step = 1; step <= 9; ++step) {
    run(plan);
    tree_.append(leaves_[0]).value();
    plan.advance(tree_).value();
  }
  EXPECT_EQ(files().size(), 5u);
  EXPECT_EQ(capture::readStep(files()[4])->tree.nodes()[1].tokens, 13);
}

TEST_F(CaptureApiTest, NothingIsWrittenWhileItIsOff) {
  auto plan = Plan::make(attention_, tree_).value();
  run(plan);
  start();
  run(plan); // of a tree from before
  EXPECT_TRUE(files().empty());
  stopCapture();
  tree_.append(leaves_[0]).value();
  plan.advance(tree_).value();
  run(plan);
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(captureState().isOn);
}

TEST_F(CaptureApiTest, TensorsAreThoseOfTheTreesTokens) {
  start(CaptureWhat::Tensors);
  std::fill_n(k_.begin() + 5 * 2048, 128,
              std::uint16_t{0x4000}); // page 5 is the prompt's third: token 32 is 2
  run(Plan::make(attention_, tree_).value());
  const auto step = capture::readStep(files().at(0));
  ASSERT_TRUE(step) << step.error().message;
  const std::string text = module_cache::readText(folder_.path("steps/" + step->tensors + "/k.npy"));
  EXPECT_THAT(text, HasSubstr("'shape': (52, 2, 64)"));
  const auto value = [&](int token) {
    float result = 0;
    std::memcpy(&result, text.data() + text.size() - static_cast<std::size_t>((52 - token) * 128) * 4, 4);
    return result;
  };
  EXPECT_EQ(value(31), 1);
  EXPECT_EQ(value(32), 2);
  EXPECT_EQ(value(33), 1);
}

/// What is on this machine stays on it.
TEST_F(CaptureApiTest, NothingSecretIsWritten) {
  const test::SetVariable secret("DEFT_TEST_SECRET", "verysecretvalue"), token("HF_TOKEN", "hf_tokentoken");
  start();
  const std::string spec = folder_.path("mine/spec.deft");
  std::filesystem::create_directories(folder_.path("mine"));
  std::filesystem::create_directories(folder_.path("configs"));
  module_cache::writeText(
      folder_.path("configs/given.json"),
      R"({"partition": "query", "chunk_tokens": 0, "phases": [{"name": "rows", "rows_above": -1, "family": "sm80", "tile_q": 16, "tile_kv": 64, "stages": 1, "warps": 1}]})");
  const test::SetVariable config("DEFT_CONFIG_PATH", folder_.path("configs/given.json"));
  run(Plan::make(loadPackage(DEFT_TEST_PACKAGE).value(), tree_).value());
  const std::string text = module_cache::readText(files().at(0));
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  for (const std::string &word :
       {std::string("verysecretvalue"), std::string("hf_tokentoken"), folder_.path(),
        std::filesystem::current_path().string(), std::string(DEFT_TEST_PACKAGE), std::string("/home/"),
        std::string("/tmp/"), std::string(host)})
    EXPECT_THAT(text, Not(HasSubstr(word)));
  for (const char *name : {"HOME", "USER", "LOGNAME", "PATH"})
    if (const char *value = std::getenv(name); value && std::string(value).size() > 4) {
      EXPECT_THAT(text, Not(HasSubstr(value))) << name;
    }
}

TEST_F(CaptureApiTest, DraftsComeWithTheirMask) {
  PagedBatch batch = PagedBatch::make({.pageSize = 16}).value();
  const std::vector<int> rows{3, 1, 3, 2}, lengths{20, 18}, drafts{3, 1};
  batch.update({.table = {.entries = rows, .rowStride = 2}, .lengths = lengths, .drafts = drafts}).value();
  start();
  auto plan = batch.plan(attention_).value();
  const std::vector<std::uint32_t> bits{1, 3, 5, 0, 1, 0, 0, 0};
  plan.draft({.bits = bits.data(), .drafts = 4, .requests = 2}).value();
  q_.resize(std::size_t{4} * 256), out_.resize(q_.size());
  table_ = rows;
  run(plan);
  const auto step = capture::readStep(files().at(0));
  ASSERT_TRUE(step) << step.error().message;
  ASSERT_EQ(step->drafts.size(), 2u);
  EXPECT_THAT(step->drafts[0].sees, ElementsAre(ElementsAre(0), ElementsAre(0, 1), ElementsAre(0, 2)));
  const auto tree = capture::treeOf(*step);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->pathTokens(tree->queries()[2]), 22);
  EXPECT_EQ(tree->pathTokens(tree->queries()[3]), 19);
}

TEST_F(CaptureApiTest, WrongOptionsAreNamed) {
  EXPECT_EQ(startCapture({.folder = ""}).error().message, "CaptureOptions::folder is empty");
  EXPECT_EQ(startCapture({.folder = "x", .what = static_cast<CaptureWhat>(3)}).error().message,
            "CaptureOptions::what is 3, not between 0 and 2");
  EXPECT_EQ(startCapture({.folder = "x", .mostSteps = -1}).error().field, "CaptureOptions::mostSteps");
  module_cache::writeText(folder_.path("file"), "");
  EXPECT_EQ(startCapture({.folder = folder_.path("file")}).error().code, ErrorCode::Environment);
}

TEST_F(CaptureApiTest, ARunDoesNotFailForIt) {
  start();
  auto plan = Plan::make(attention_, tree_).value();
  std::filesystem::remove_all(folder_.path("steps"));
  module_cache::writeText(folder_.path("steps"), "in the way");
  run(plan);
  EXPECT_EQ(out_[0], kOne);
  EXPECT_FALSE(captureState().isOn);
  EXPECT_THAT(captureState().ended, HasSubstr("Not a directory"));
}

} // namespace
} // namespace deft
