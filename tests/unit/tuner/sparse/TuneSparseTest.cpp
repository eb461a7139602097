// On the tests' driver, whose kernels always take as long, so the rule's choices stay.
#include "tuner/sparse/TuneSparse.h"

#include "runtime/config_cache/SparseFiles.h"
#include "runtime/nvrtc/Nvrtc.h"
#include "tests/unit/tuner/sparse/OnTestsDriver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace deft::sparse {
namespace {

using testing::HasSubstr;

class TuneSparseTest : public OnTestsDriver {
protected:
  TuneReport tuned(const program::Program &program, const Listener &listener = {}) const {
    auto report = tune(program, {}, options_, listener);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : TuneReport{};
  }

  std::vector<config_cache::LoadedSparseEntry> kept(const TuneReport &report) const {
    return config_cache::findSparse(options_.places, report.device).tuning.entries();
  }
};

TEST_F(TuneSparseTest, OfAPackageCutsAreTunedForItsTile) {
  const TuneReport report = tuned(package());
  EXPECT_EQ(report.ended, Ended::Complete);
  EXPECT_EQ(report.device.arch, "sm_90");
  EXPECT_TRUE(report.isPackaged);
  EXPECT_EQ(report.tiles, 1);
  ASSERT_EQ(report.lists.size(), 3u);
  const auto entries = kept(report);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].path, report.path);
  const config_cache::SparseEntry &entry = entries[0].entry;
  EXPECT_FALSE(entry.isChosen);
  EXPECT_TRUE(entry.isFresh());
  EXPECT_EQ(entry.budget, 24);
  EXPECT_TRUE(entry.isOf(package().variant()));
  ASSERT_EQ(entry.cuts.size(), 3u);
  EXPECT_EQ(entry.cuts[2].queries, 3);
  EXPECT_EQ(entry.cuts[2].itemTokens, 0); // nothing is faster than the rule
  EXPECT_GT(entry.cuts[2].tunedUs, 0);
}

TEST_F(TuneSparseTest, WhatIsKnownIsNotAskedAgainUnlessItIsWanted) {
  options_.lists = {{24, 1}};
  tuned(package());
  options_.lists = {{24, 1}, {24, 2}};
  const TuneReport more = tuned(package());
  ASSERT_EQ(more.known.size(), 1u);
  EXPECT_EQ(more.known[0].lists, (Lists{24, 1}));
  EXPECT_GT(more.known[0].tunedUs, 0);
  ASSERT_EQ(more.lists.size(), 1u);
  EXPECT_EQ(more.lists[0].lists.queries, 2);
  EXPECT_EQ(kept(more)[0].entry.cuts.size(), 2u);
  const TuneReport none = tuned(package());
  EXPECT_EQ(none.known.size(), 2u);
  EXPECT_TRUE(none.lists.empty());
  options_.isFresh = true;
  EXPECT_EQ(tuned(package()).lists.size(), 2u);
}

TEST_F(TuneSparseTest, CtrlCKeepsWhatIsDone) {
  int asked = 0;
  Listener listener;
  listener.isCancelled = [&] { return ++asked > 30; };
  const TuneReport report = tuned(package(), listener);
  EXPECT_EQ(report.ended, Ended::Interrupted);
  ASSERT_GE(report.lists.size(), 1u);
  ASSERT_LT(report.lists.size(), 3u);
  EXPECT_EQ(kept(report)[0].entry.cuts.size(), report.lists.size());
  const TuneReport rest = tuned(package());
  EXPECT_EQ(rest.ended, Ended::Complete);
  EXPECT_EQ(rest.known.size(), report.lists.size());
  EXPECT_EQ(rest.known.size() + rest.lists.size(), 3u);
}

TEST_F(TuneSparseTest, ABudgetOfSecondsIsKept) {
  options_.seconds = 1e-9;
  const TuneReport report = tuned(package());
  EXPECT_EQ(report.ended, Ended::Budget);
  EXPECT_TRUE(report.lists.empty());
  EXPECT_FALSE(std::filesystem::exists(options_.places.userSparse));
}

TEST_F(TuneSparseTest, WhatIsNamedGetsTheEntriesAndKnowsNone) {
  options_.lists = {{24, 1}};
  tuned(package());
  options_.path = folder_.path("mine.json");
  const TuneReport report = tuned(package());
  EXPECT_TRUE(report.known.empty());
  EXPECT_EQ(report.path, options_.path);
  const auto reading = config_cache::parseSparseFile(module_cache::readText(options_.path), options_.path);
  EXPECT_EQ(reading.file.entries.size(), 1u);
}

TEST_F(TuneSparseTest, OfASpecTilesAreComparedAndOneIsChosen) {
  if (const auto nvrtc = nvrtc::Nvrtc::load(); !nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  options_.axes = {{"tile_kv", {"32"}}, {"stages", {"2"}}};
  options_.lists = {{24, 1}};
  options_.threads = 2;
  support::DiagnosticSink sink;
  const auto imports = [](const std::string &, const std::string &) {
    return support::Result<spec::ImportedFile>(support::Error{});
  };
  const auto file = program::readSpec(DEFT_TEST_SELECTING_SPEC);
  ASSERT_TRUE(file) << file.error().message;
  const auto program = program::Program::fromSpec(program::checkSpec(*file, imports, sink), "", "");
  ASSERT_TRUE(program) << program.error().message;
  if (const auto source = program->source(); !source)
    GTEST_SKIP() << source.error().message;
  const TuneReport report = tuned(*program);
  EXPECT_FALSE(report.isPackaged);
  EXPECT_EQ(report.tiles, 3);                               // the rule's, and two of 32 tokens
  EXPECT_EQ(report.tile.tileKv, report.untunedTile.tileKv); // which is as fast
  ASSERT_EQ(kept(report).size(), 1u);
  EXPECT_TRUE(kept(report)[0].entry.isChosen);
  options_.axes = {{"tile_q", {"16"}}};
  const auto refused = tune(*program, {}, options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "sparse layers have no axis `tile_q`");
}

} // namespace
} // namespace deft::sparse
