// Sessions on the tests' driver, whose kernels compute on the host and always take as long: children,
// compilers and races are those of a GPU. NVRTC compiles the kernels.
#include "compiler/kernels/DefaultConfig.h"
#include "runtime/nvrtc/Nvrtc.h"
#include "tests/support/Forest.h"
#include "tests/support/PlainHooks.h"
#include "tests/support/SetVariable.h"
#include "tests/support/VariantBuilder.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace deft::session {
namespace {

spec::Variant plainVariant() {
  spec::Variant variant = test::VariantBuilder(4, 2, 64).variant;
  variant.name = "plain";
  variant.cache.pageSize = 16;
  variant.scale = 0.25;
  return variant;
}

/// What the front end would make of it.
codegen::cuda::VariantSource sourceOf(const spec::Variant &variant) {
  auto source = codegen::cuda::VariantSource::of(variant);
  source.hooks = test::plainHooks(variant.scale);
  return source;
}

class CudaTuneTest : public testing::Test {
protected:
  void SetUp() override {
    if (const auto nvrtc = nvrtc::Nvrtc::load(); !nvrtc)
      GTEST_SKIP() << nvrtc.error().message;
    input_.variant = plainVariant();
    input_.samples = {{"few", 0, test::levelTree({1, 4}, {40, 9}), false},
                      {"held", 0, test::levelTree({1, 4}, {41, 9}), true}};
    input_.backend.source = sourceOf(input_.variant);
    input_.backend.open = [this] { return measure::openCuda(input_.variant); };
    input_.backend.untuned = [this](const config_cache::DeviceKey &key) {
      return kernels::defaultConfigs(input_.variant, config_cache::targetOf(key));
    };
    options_.configPath = folder_.path("configs.json");
    options_.journal = folder_.path("journal.jsonl");
    options_.mostCandidates = 12;
    options_.threads = 2;
    options_.axes = {{"shape", {"sm80"}},    {"tile_q", {"16", "32"}}, {"tile_kv", {"64"}},
                     {"stages", {"2", "3"}}, {"warps", {"4"}},         {"prices", {"machine"}}};
  }

  TuneReport run(const std::function<bool()> &isCancelled = {}) {
    Listener listener;
    listener.isCancelled = isCancelled;
    listener.progress = [this](const Status &status) { hasMeasured_ |= status.measured > 0; };
    listener.note = [](const std::string &line) {
      EXPECT_THAT(line, testing::Not(testing::HasSubstr("left out")));
    };
    auto report = tune(input_, options_, listener);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report ? std::move(*report) : TuneReport{};
  }

  test::SetVariable kernels_{"DEFT_FAKE_CUDA_VARIANT", "4,2,64,16,bf16,0.25"};
  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path("cache")};
  TuneInput input_;
  TuneOptions options_;
  bool hasMeasured_ = false;
};

TEST_F(CudaTuneTest, EveryCandidateIsCompiledCheckedAndMeasured) {
  const TuneReport report = run();
  EXPECT_EQ(report.device.arch, "sm_90");
  EXPECT_EQ(report.ended, Ended::Complete);
  EXPECT_EQ(report.restarts, 0);
  ASSERT_EQ(report.classes.size(), 1U);
  EXPECT_TRUE(report.classes[0].isDone);
  EXPECT_EQ(report.classes[0].candidates, 12);
  EXPECT_EQ(report.classes[0].rejected, 0);
  EXPECT_TRUE(report.classes[0].entry.keepsDefault); // all take as long
}

TEST_F(CudaTuneTest, AResumedSessionRacesWhatWasRacedWhicheverKernelsAreReady) {
  int asked = 0;
  options_.compilers = 2;
  // In the middle of a race, however long the compilers take.
  const TuneReport first = run([&] { return hasMeasured_ && ++asked > 10; });
  EXPECT_EQ(first.ended, Ended::Interrupted);
  EXPECT_GT(first.made, 0);
  // Now all that was compiled is in the cache, and one process takes it from there.
  options_.compilers = 1;
  const TuneReport second = run();
  EXPECT_TRUE(second.isResumed);
  EXPECT_EQ(second.ended, Ended::Complete);
  EXPECT_EQ(second.reused, first.made);
  int batches = 0;
  std::set<std::string> raced;
  const auto events = readJournal(options_.journal);
  ASSERT_TRUE(events.ok());
  for (const nlohmann::json &event : *events)
    if (event["event"] == "batch") {
      ++batches;
      for (const std::string id : event["ids"])
        EXPECT_TRUE(raced.insert(id).second) << id << " is raced twice";
    }
  EXPECT_GE(batches, 2);
  EXPECT_EQ(raced.size(), 12U);
}

TEST_F(CudaTuneTest, WhatSomeTreesGetUntunedIsACandidateForAll) {
  // Of one class; between them the prices of the two kernels cross.
  input_.samples = {{"short", 0, test::levelTree({1, 2}, {96, 4}), false},
                    {"long", 0, test::levelTree({1, 2}, {128, 4}), false}};
  options_.addsSimilar = false;
  const TuneReport report = run();
  ASSERT_EQ(report.classes.size(), 1U);
  EXPECT_TRUE(report.classes[0].entry.keepsDefault); // all take as long
  const auto events = readJournal(options_.journal);
  ASSERT_TRUE(events.ok());
  std::set<std::string> untuned, raced;
  std::set<std::tuple<std::string, int, int>> measured;
  for (const nlohmann::json &event : *events) {
    if (event["event"] == "class")
      for (const nlohmann::json &tree : event["trees"])
        untuned.insert(tree["untuned"]);
    if (event["event"] == "batch")
      raced.insert(event["ids"].begin(), event["ids"].end());
    if (event["event"] == "measured") {
      EXPECT_TRUE(measured.emplace(event["id"], event["tree"], event["round"]).second) << event;
    }
  }
  EXPECT_EQ(untuned.size(), 2U);
  EXPECT_THAT(raced, testing::IsSupersetOf(untuned));
  EXPECT_EQ(report.reused, 0);
}

TEST_F(CudaTuneTest, KernelsThatCannotBeCompiledAreSaid) {
  input_.backend.source->hooks = "no code";
  Listener listener;
  std::vector<std::string> notes;
  listener.note = [&](const std::string &line) { notes.push_back(line); };
  const auto report = tune(input_, options_, listener);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->classes[0].isDone);
  EXPECT_THAT(notes, testing::Contains(testing::HasSubstr("left out: compile: ")));
  EXPECT_THAT(report->warnings,
              testing::Contains(testing::HasSubstr("the untuned config cannot be measured")));
}

} // namespace
} // namespace deft::session
