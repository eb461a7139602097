#include "tuner/session/Recording.h"

#include "compiler/config/DevicePrices.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::session {
namespace {

class RecordingTest : public testing::Test {
protected:
  RecordingTest() {
    for (const char *const name : {"few", "more", "held out"})
      samples_.push_back({name, samples_.size() + 3, test::levelTree({1, 4}, {40, 9}), false});
    for (const Sample &sample : samples_)
      trees_.samples.push_back(&sample);
  }
  Recording recorded(const std::map<std::string, double> &ratios) const {
    return recordingOf({config_cache::DeviceKey::Kind::Cpu, "x86-64-v4", 512, 4, "fake"},
                       config_cache::VariantSignature::of(variant_), trees_, space_, untuned_, 123.456,
                       ratios);
  }
  std::string idOf(std::size_t point) const {
    return space::configId(space_.configOf(space_.points()[point]));
  }

  const spec::Variant variant_ = config_cache::VariantSignature{8, 2, spec::Tensors::alike(64)}.variant();
  const space::Space space_ =
      *space::makeSpace(variant_, {nullptr, config::processorPrices(2)},
                        {{"chunk_tokens", {"0", "256"}}, {"prices", {"machine"}}, {"tile_q", {"16"}}});
  const config::Config untuned_ = space_.configOf(space_.points()[1]);
  std::vector<Sample> samples_;
  TreesOfClass trees_{{14, 6, 3, 2, 0}, {}, 2};
};

TEST_F(RecordingTest, APointWithoutATimeIsUnusableButForTheUntunedOne) {
  const Recording recording = recorded({{idOf(0), 0.75}, {idOf(3), 1.5}, {"of another space", 9}});
  ASSERT_EQ(recording.ratios.size(), space_.points().size());
  for (std::size_t i = 0; i < recording.ratios.size(); ++i)
    EXPECT_EQ(recording.ratios[i], i == 0 ? 0.75 : i == 1 ? 1 : i == 3 ? 1.5 : 0) << i;
  EXPECT_EQ(recorded({{idOf(1), 1.01}}).ratios[1], 1.01) << "it was measured beside itself";
  ASSERT_EQ(recording.trees.size(), 2U) << "those that were searched on";
  EXPECT_EQ(recording.trees[1], (std::pair<std::string, std::uint64_t>{"more", 4}));
}

TEST_F(RecordingTest, AFileKeepsThousandths) {
  const module_cache::TestFolder folder;
  const Recording recording = recorded({{idOf(0), 0.75049}, {idOf(2), 12}});
  ASSERT_TRUE(writeRecording(recording, folder.path("new")));
  const auto read = readRecording(folder.path("new/" + recordingName(recording)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->device, recording.device);
  EXPECT_EQ(read->signature, recording.signature);
  EXPECT_EQ(read->treeClass, recording.treeClass);
  EXPECT_EQ(read->trees, recording.trees);
  EXPECT_EQ(space::configId(read->untuned), space::configId(untuned_));
  EXPECT_EQ(read->untunedUs, 123.46);
  EXPECT_EQ(read->space.points(), space_.points());
  EXPECT_EQ(read->ratios[0], 0.75);
  EXPECT_EQ(read->ratios[1], 1);
  EXPECT_EQ(read->ratios[2], 12);
  EXPECT_EQ(recordingName(recording), "x86-64-v4-4-fake-q8-kv2-c1-t14-q6-s3-d2-f0.json");
}

TEST_F(RecordingTest, WhatIsNoRecordingIsSaid) {
  const nlohmann::json good = toJson(recorded({}));
  ASSERT_TRUE(recordingFromJson(good));
  const auto with = [&](const char *key, const nlohmann::json &value) {
    nlohmann::json other = good;
    other[key] = value;
    const auto read = recordingFromJson(other);
    return read ? "read" : read.error().message;
  };
  EXPECT_EQ(with("version", 2), "recorded space: it is not of version 1");
  EXPECT_EQ(with("format", "deft-tree"), "recorded space: it is not of version 1");
  EXPECT_EQ(with("class", "c9-t1"), "recorded space: its signature or its class is not understood");
  EXPECT_EQ(with("thousandths", {1, 2}),
            "recorded space: 2 times for " + std::to_string(space_.points().size()) + " points");
  for (const nlohmann::json &none : {nlohmann::json(), nlohmann::json::array()})
    EXPECT_EQ(with("trees", none), "recorded space: it has no trees");
  for (const char *const key :
       {"device", "signature", "class", "trees", "space", "untuned", "untuned_us", "thousandths"}) {
    nlohmann::json part = good;
    part.erase(key);
    EXPECT_FALSE(recordingFromJson(part)) << key;
    EXPECT_NE(with(key, "text"), "read") << key;
  }
  const module_cache::TestFolder folder;
  module_cache::writeText(folder.path("list"), "[]");
  EXPECT_EQ(readRecording(folder.path("list")).error().message,
            "recorded space: `" + folder.path("list") + "` is no JSON object");
  module_cache::writeText(folder.path("torn"), "{\n \"a\"");
  EXPECT_EQ(readRecording(folder.path("torn")).error().message,
            "recorded space: `" + folder.path("torn") +
                "`: not valid JSON at 2:5: unexpected end of input, expected `:`");
  EXPECT_FALSE(readRecording(folder.path("none")));
}

} // namespace
} // namespace deft::session
