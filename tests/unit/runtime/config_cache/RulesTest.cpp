#include "runtime/config_cache/Rules.h"

#include "compiler/config/ConfigJson.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config_cache {
namespace {

using module_cache::writeText;
using testing::HasSubstr;

const TreeClass kClass{14, 6, 3, 2, 0};
constexpr int kHeuristicChunk = 1;

/// Writes files as users and installations do, and asks for a config. Chunks tell which entry came.
class RulesTest : public testing::Test {
protected:
  RulesTest() {
    places_ = {"", folder_.path("user"), folder_.path("installed")};
    request_.signature = someEntry().signature;
    request_.treeClass = kClass;
    request_.kernelHash = kernelHash(DeviceKey::Kind::Gpu, {});
    request_.heuristic = someConfig(kHeuristicChunk);
  }
  void write(const std::string &folder, const std::vector<Entry> &entries,
             const DeviceKey &device = h200()) const {
    const auto report =
        mergeWrite(folder_.path(folder) + "/" + device.fileName(), Owner::Deftc, device, entries);
    ASSERT_TRUE(report) << report.error().message;
  }
  Ruling choose() const { return applyRules(ConfigCache::load(places_, h200()), request_); }
  std::vector<int> nextChunks() const {
    std::vector<int> chunks;
    for (const Candidate &candidate : choose().next)
      chunks.push_back(candidate.config.chunkTokens);
    return chunks;
  }
  void expect(Rule rule, int chunk) const {
    const Ruling ruling = choose();
    EXPECT_EQ(ruleName(ruling.rule()), ruleName(rule));
    EXPECT_EQ(ruling.config().chunkTokens, chunk);
  }

  module_cache::TestFolder folder_;
  Places places_;
  Request request_;
};

Entry staleEntry(const TreeClass &treeClass, int chunk) {
  Entry entry = someEntry(treeClass, chunk);
  entry.provenance.kernelHash = "of other kernels";
  return entry;
}

TEST_F(RulesTest, WhatIsForSomeTreesLeavesTheOthersOfTheClassTheUntunedChoice) {
  Entry entry = someEntry(kClass, 256);
  entry.onlyFor = {{14.2, 6, 3, 2, 0}};
  write("user", {entry, someEntry({14, 6, 3, 3, 0}, 512)}); // and a near one
  request_.coordinates = Coordinates{14.25, 6, 3, 2, 0};
  expect(Rule::Exact, 256);
  EXPECT_FALSE(choose().chosen.isUntuned());
  for (const std::optional<Coordinates> &other :
       {std::optional<Coordinates>(), std::optional(Coordinates{13.8, 6, 3, 2, 0})}) {
    request_.coordinates = other;
    expect(Rule::Exact, kHeuristicChunk);
    EXPECT_TRUE(choose().chosen.isUntuned());
    EXPECT_THAT(choose().chosen.why(), HasSubstr("won on other trees only"));
  }
}

TEST_F(RulesTest, WithoutAnyFileTheHeuristicChooses) {
  expect(Rule::Heuristic, kHeuristicChunk);
  EXPECT_EQ(choose().chosen.why(), "no tuned config; chosen by the cost model");
  EXPECT_THAT(choose().next, testing::IsEmpty());
}

TEST_F(RulesTest, AnEntryOfThisVariantAndClassIsExact) {
  write("user", {someEntry(kClass, 256)});
  expect(Rule::Exact, 256);
  EXPECT_EQ(choose().chosen.why(), "tuned for this class on this device, 1.25 times as fast as untuned");
  EXPECT_EQ(choose().chosen.path, folder_.path("user") + "/sm_90-132-nvidia_h200.json");
  EXPECT_THAT(nextChunks(), testing::ElementsAre(kHeuristicChunk));
}

TEST_F(RulesTest, TheUserComesBeforeTheInstallationForEachEntry) {
  const TreeClass other{15, 6, 3, 2, 0};
  write("installed", {someEntry(kClass, 128), someEntry(other, 128)});
  write("user", {someEntry(kClass, 256)});
  expect(Rule::Exact, 256);
  request_.treeClass = other;
  expect(Rule::Exact, 128);
}

TEST_F(RulesTest, AnOverrideFileComesBeforeBothWhateverItsAge) {
  write("user", {someEntry(kClass, 256)});
  write("given", {staleEntry(kClass, 512)});
  places_.overridePath = folder_.path("given/sm_90-132-nvidia_h200.json");
  expect(Rule::Override, 512);
  EXPECT_THAT(choose().chosen.why(), HasSubstr("given by " + places_.overridePath));
  places_.overridePath = folder_.path("given"); // a folder of files does, too
  expect(Rule::Override, 512);
  request_.treeClass = {8, 1, 0, 0, 0}; // of which it says nothing
  expect(Rule::Heuristic, kHeuristicChunk);
}

TEST_F(RulesTest, AnOverrideOfOneConfigIsUsedForAll) {
  write("user", {someEntry(kClass, 256)});
  places_.overridePath = folder_.path("one.json");
  writeText(places_.overridePath, config::toJson(someConfig(2048)).dump());
  expect(Rule::Override, 2048);
  EXPECT_EQ(choose().chosen.why(), "given by " + places_.overridePath);
  EXPECT_THAT(nextChunks(), testing::ElementsAre(256, kHeuristicChunk));
  request_.isLegal = [](const config::Config &config) -> support::Result<void> {
    if (config.chunkTokens == 2048)
      return support::Error{support::ErrorCode::Diagnostics, "too long", ""};
    return {};
  };
  expect(Rule::Exact, 256);
  ASSERT_EQ(choose().rejected.size(), 1U);
  EXPECT_EQ(choose().rejected[0].reason, "too long");
}

TEST_F(RulesTest, ASiblingsEntryComesAfterOnesOwnAndBeforeNearbyOnes) {
  write("installed", {someEntry(kClass, 128)}, h100());
  write("installed", {someEntry({15, 6, 3, 2, 0}, 64)});
  expect(Rule::Sibling, 128);
  EXPECT_THAT(choose().chosen.why(), HasSubstr("tuned for this class on NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(nextChunks(), testing::ElementsAre(64, kHeuristicChunk));
  write("installed", {someEntry(kClass, 256)});
  expect(Rule::Exact, 256);
}

TEST_F(RulesTest, OtherArchitecturesAndSizesAreNoSiblings) {
  DeviceKey smaller = h100(), older = h100();
  smaller.units = 114;
  older.arch = "sm_80";
  write("user", {someEntry(kClass, 128)}, smaller);
  write("user", {someEntry(kClass, 128)}, older);
  expect(Rule::Heuristic, kHeuristicChunk);
  // Not even under the name of a file that is looked at.
  std::filesystem::rename(folder_.path("user") + "/" + older.fileName(),
                          folder_.path("user") + "/" + h200().fileName());
  expect(Rule::Heuristic, kHeuristicChunk);
  EXPECT_THAT(ConfigCache::load(places_, h200()).notes(),
              testing::Contains(HasSubstr("(sm_80, 132 multiproc")));
}

TEST_F(RulesTest, TheNearestClassWithinTheLimitIsNearby) {
  write("user",
        {someEntry({16, 6, 3, 2, 0}, 64), someEntry({15, 6, 3, 2, 0}, 128), someEntry({14, 7, 3, 3, 0}, 32)});
  expect(Rule::Nearby, 128);
  EXPECT_THAT(choose().chosen.why(), HasSubstr("class c1-t15-q6-s3-d2-f0, which is near (0.5)"));
  EXPECT_THAT(nextChunks(), testing::ElementsAre(64, kHeuristicChunk)); // the third is at 1.5
}

TEST_F(RulesTest, AnEntryOfAnotherVariantOfTheShapeIsNearby) {
  Entry half = someEntry(kClass, 128), windowed = someEntry(kClass, 64), larger = someEntry(kClass, 32);
  half.signature.tensors = spec::Tensors::alike(128, spec::DType::F16);
  windowed.signature.hooks = "0123abcd";
  larger.signature.queryHeads = 64;
  write("user", {half, windowed, larger});
  expect(Rule::Nearby, 128);
  EXPECT_THAT(choose().chosen.why(), HasSubstr("tuned for q32-kv8-d128-f16-p16nhd-plain"));
  EXPECT_THAT(nextChunks(), testing::ElementsAre(64, kHeuristicChunk));
}

TEST_F(RulesTest, ASiblingsNearbyEntryComesAfterAsNearAnOne) {
  write("user", {someEntry({15, 6, 3, 2, 0}, 128)}, h100());
  expect(Rule::Nearby, 128);
  write("user", {someEntry({13, 6, 3, 2, 0}, 64)});
  expect(Rule::Nearby, 64);
}

TEST_F(RulesTest, StaleEntriesAreUsedButComeAfterFreshOnesOfTheClass) {
  write("user", {staleEntry(kClass, 256)});
  expect(Rule::Exact, 256);
  EXPECT_THAT(choose().chosen.why(), HasSubstr("; the kernels have changed since"));
  EXPECT_TRUE(choose().chosen.isStale);
  write("user", {someEntry({15, 6, 3, 2, 0}, 64)}); // at 0.5
  expect(Rule::Exact, 256);
  Entry half = someEntry(kClass, 32); // at 0.25
  half.signature.tensors = spec::Tensors::alike(128, spec::DType::F16);
  write("user", {half});
  expect(Rule::Nearby, 32);
  write("installed", {someEntry(kClass, 128)});
  expect(Rule::Exact, 128);
  EXPECT_THAT(nextChunks(), testing::ElementsAre(32, 256, 64, kHeuristicChunk));
}

Entry cutEntry(const TreeClass &treeClass, int chunk) {
  Entry entry = someEntry(treeClass, chunk);
  entry.isComplete = false;
  return entry;
}

TEST_F(RulesTest, WhatWasCutShortIsNearAtBest) {
  write("user", {cutEntry(kClass, 256)});
  expect(Rule::Nearby, 256);
  EXPECT_EQ(choose().chosen.why(),
            "tuned for this class on this device, 1.25 times as fast as untuned; its search "
            "was cut short by its time budget");
  EXPECT_EQ(toJson(choose().chosen)["complete"], false);
  write("user", {someEntry({15, 6, 3, 2, 0}, 64)}); // at 0.5
  expect(Rule::Nearby, 256);
  Entry half = someEntry(kClass, 32); // at 0.25
  half.signature.tensors = spec::Tensors::alike(128, spec::DType::F16);
  write("user", {half});
  expect(Rule::Nearby, 32);
  write("installed", {someEntry(kClass, 128)});
  expect(Rule::Exact, 128);
  EXPECT_THAT(nextChunks(), testing::ElementsAre(32, 256, 64, kHeuristicChunk));
}

TEST_F(RulesTest, WhatWasCutShortOnASiblingIsNoSiblingsEntry) {
  write("installed", {cutEntry(kClass, 256)}, h100());
  expect(Rule::Nearby, 256);
  EXPECT_THAT(choose().chosen.why(), testing::StartsWith("tuned for this class on NVIDIA H100 80GB HBM3"));
}

TEST_F(RulesTest, AnOverrideIsUsedHoweverItWasFound) {
  write("override", {cutEntry(kClass, 256)});
  places_.overridePath = folder_.path("override");
  expect(Rule::Override, 256);
  EXPECT_THAT(choose().chosen.why(), HasSubstr("its search was cut short"));
}

TEST_F(RulesTest, WhatWasCutShortWithOtherKernelsIsNotUsed) {
  Entry entry = cutEntry(kClass, 256);
  entry.provenance.kernelHash = "of other kernels";
  write("user", {entry});
  expect(Rule::Heuristic, kHeuristicChunk);
}

TEST_F(RulesTest, AStaleEntryOfAnotherClassIsUsedOnlyWhereSomebodyAsksForIt) {
  write("user", {staleEntry({15, 6, 3, 2, 0}, 64)});
  expect(Rule::Heuristic, kHeuristicChunk);
  EXPECT_THAT(nextChunks(), testing::IsEmpty());
  request_.withStaleNearby = true;
  expect(Rule::Nearby, 64);
}

TEST_F(RulesTest, AnIllegalEntryIsPassedOverAndNamed) {
  write("user", {someEntry(kClass, 256), someEntry({15, 6, 3, 2, 0}, 64)});
  request_.isLegal = [](const config::Config &config) -> support::Result<void> {
    if (config.chunkTokens == 256)
      return support::Error{support::ErrorCode::Diagnostics, "no room", ""};
    return {};
  };
  expect(Rule::Nearby, 64);
  const Ruling ruling = choose();
  ASSERT_EQ(ruling.rejected.size(), 1U);
  EXPECT_EQ(ruling.rejected[0].reason, "no room");
  EXPECT_EQ(ruling.rejected[0].entry->entry.config.chunkTokens, 256);
}

TEST_F(RulesTest, WhereTheDefaultWonItIsTodaysDefault) {
  Entry entry = someEntry(kClass, 256);
  entry.keepsDefault = true;
  write("user", {entry});
  expect(Rule::Exact, kHeuristicChunk);
  EXPECT_EQ(choose().chosen.why(), "tuned for this class on this device: nothing beat the untuned choice");
}

TEST_F(RulesTest, BrokenAndUnknownFilesAreNotedAndCostNothing) {
  write("installed", {someEntry(kClass, 128)});
  std::filesystem::create_directory(folder_.path("user"));
  const std::string path = folder_.path("user") + "/" + h200().fileName();
  for (const char *text : {"", "{", R"({"format": "deftc-configs", "version": 7})"}) {
    writeText(path, text);
    expect(Rule::Exact, 128);
    EXPECT_THAT(ConfigCache::load(places_, h200()).notes(), testing::ElementsAre(HasSubstr(path)));
  }
  places_.overridePath = folder_.path("nowhere.json");
  EXPECT_THAT(ConfigCache::load(places_, h200()).notes(),
              testing::Contains(HasSubstr("there is no such file")));
  expect(Rule::Exact, 128);
}

TEST_F(RulesTest, TheListOfNextCandidatesIsShortAndEndsWithTheHeuristic) {
  std::vector<Entry> many;
  for (int tokens = 11; tokens < 18; ++tokens)
    for (int shorts = 0; shorts < 3; ++shorts)
      many.push_back(someEntry({tokens, 6, 3, 2, shorts}, 100 + tokens));
  write("user", many);
  const std::vector<int> chunks = nextChunks();
  EXPECT_EQ(chunks.size(), kMostNext);
  EXPECT_EQ(chunks.back(), kHeuristicChunk);
}

TEST_F(RulesTest, JsonTellsRuleFileAndCandidates) {
  write("user", {someEntry(kClass, 256), someEntry({15, 6, 3, 2, 0}, 64)});
  const nlohmann::json json = toJson(choose());
  EXPECT_EQ(json["class"], kClass.text());
  EXPECT_EQ(json["signature"], "q32-kv8-d128-bf16-p16nhd-plain");
  EXPECT_EQ(json["chosen"]["rule"], "exact");
  EXPECT_EQ(json["chosen"]["entry"]["origin"], "user");
  EXPECT_EQ(json["chosen"]["config"]["chunk_tokens"], 256);
  EXPECT_EQ(json["chosen"]["path"], folder_.path("user") + "/sm_90-132-nvidia_h200.json");
  ASSERT_EQ(json["next"].size(), 2U);
  EXPECT_EQ(json["next"][0]["rule"], "nearby");
  EXPECT_EQ(json["next"][1]["rule"], "heuristic");
  EXPECT_FALSE(json["next"][1].contains("path"));
}

TEST_F(RulesTest, HidingAnEntryHidesItEverywhere) {
  write("user", {someEntry(kClass, 256)});
  write("installed", {someEntry(kClass, 128), someEntry({15, 6, 3, 2, 0}, 64)});
  const ConfigCache cache = ConfigCache::load(places_, h200());
  ASSERT_EQ(cache.entries().size(), 3U);
  const Ruling ruling = applyRules(cache.without(cache.entries().front()), request_);
  EXPECT_EQ(ruling.config().chunkTokens, 64);
}

TEST(PlacesTest, AreThoseOfTheEnvironment) {
  const test::SetVariable cache("DEFT_CACHE_DIR", "/some/cache");
  {
    const test::SetVariable configs("DEFT_CONFIG_PATH", "/some/configs");
    EXPECT_EQ(defaultPlaces().userFolder, "/some/cache/configs");
    EXPECT_EQ(defaultPlaces().userSparse, "/some/cache/sparse");
    EXPECT_EQ(defaultPlaces().overridePath, "/some/configs");
    EXPECT_EQ(defaultPlaces("mine.json").overridePath, "mine.json");
  }
  const test::SetVariable noConfigs("DEFT_CONFIG_PATH", std::nullopt);
  EXPECT_EQ(defaultPlaces().overridePath, "");
}

} // namespace
} // namespace deft::config_cache
