#include "runtime/config_cache/SparseEntry.h"

#include "tests/unit/runtime/config_cache/SparseTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace deft::config_cache {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string errorWith(const std::string &pointer, const json &value) {
  json object = toJson(someSparseEntry());
  object[json::json_pointer(pointer)] = value;
  const auto read = sparseEntryFromJson(object);
  return read ? "" : read.error().message;
}

TEST(SparseEntryTest, ComesBackAsItWasWritten) {
  for (const spec::SelectBy by : {spec::SelectBy::KvHead, spec::SelectBy::QueryHead, spec::SelectBy::Query}) {
    SparseEntry entry = someSparseEntry();
    entry.by = by;
    const auto read = sparseEntryFromJson(toJson(entry));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, entry);
  }
  EXPECT_EQ(keyOf(someSparseEntry()), "q32-kv8-d128-bf16-p16nhd-plain kv_head 4096 128x2x4");
}

TEST(SparseEntryTest, EveryMissingOrForeignOrWrongFieldIsAnError) {
  const json whole = toJson(someSparseEntry());
  for (const auto &[key, value] : whole.items()) {
    json broken = whole;
    broken.erase(key);
    EXPECT_FALSE(sparseEntryFromJson(broken)) << key;
    broken = whole;
    broken[key] = nullptr;
    EXPECT_FALSE(sparseEntryFromJson(broken)) << key;
  }
  for (const auto &[key, value] : whole["cuts"][0].items()) {
    json broken = whole;
    broken["cuts"][0].erase(key);
    EXPECT_FALSE(sparseEntryFromJson(broken)) << key;
    broken["cuts"][0][key] = "much";
    EXPECT_FALSE(sparseEntryFromJson(broken)) << key;
  }
  json foreign = whole;
  foreign["queries"] = 4;
  EXPECT_FALSE(sparseEntryFromJson(foreign));
}

TEST(SparseEntryTest, WhatCannotBeIsAnErrorThatSaysWhat) {
  EXPECT_EQ(errorWith("/budget", 0), "`budget` is 0, not between 1 and 16777216");
  EXPECT_EQ(errorWith("/tile_kv", -64), "`tile_kv` is -64, not between 1 and 16777216");
  EXPECT_EQ(errorWith("/chosen", 1), "`chosen` is neither true nor false");
  EXPECT_EQ(errorWith("/by", "token"), "`token` is no value of `by`");
  EXPECT_THAT(errorWith("/signature", "q32"), HasSubstr("is no signature"));
  EXPECT_EQ(errorWith("/cuts/0/item_tokens", 100),
            "`item_tokens` is 100, no multiple of `tile_kv`, which is 128");
  EXPECT_EQ(errorWith("/cuts/0/queries", 8), "`cuts` are not in order of rising `queries`");
  EXPECT_EQ(errorWith("/cuts/0/queries", 0), "`queries` is 0, not between 1 and 16777216");
  EXPECT_EQ(errorWith("/cuts/0/tuned_us", 0), "`tuned_us` is not a number above 0");
  EXPECT_EQ(errorWith("/cuts/0/spread", -0.1), "`spread` is not a number of at least 0");
  EXPECT_EQ(errorWith("/cuts", json::object()), "`cuts` is no list of at most 1024");
}

TEST(SparseEntryTest, OlderCutsStayOfTheSameKernelsAlone) {
  SparseEntry newer = someSparseEntry(), older = someSparseEntry();
  newer.cuts = {{8, 256, 20, 21, 0}};
  const SparseEntry merged = withOlderCuts(newer, older);
  ASSERT_EQ(merged.cuts.size(), 3u);
  EXPECT_EQ(merged.cuts[0], older.cuts[0]);
  EXPECT_EQ(merged.cuts[1], newer.cuts[0]);
  EXPECT_EQ(merged.cuts[2], older.cuts[2]);
  older.provenance.kernelHash = "old";
  EXPECT_EQ(withOlderCuts(newer, older), newer);
}

TEST(SparseEntryTest, ItsGainIsTheMeanOfItsCuts) {
  SparseEntry entry = someSparseEntry();
  entry.cuts = {{1, 128, 10, 20, 0}, {2, 0, 30, 30, 0}, {3, 0, 40, 80, 0}, {4, 0, 7, 7, 0}};
  EXPECT_NEAR(entry.gain(), std::sqrt(2), 1e-9);
  entry.cuts.clear();
  EXPECT_EQ(entry.gain(), 1);
}

} // namespace
} // namespace deft::config_cache
