#include "tuner/space/Axis.h"

#include "compiler/spec/Limits.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::space {
namespace {

constexpr Knob kKnobs[] = {Knob::Partition, Knob::Chunk,  Knob::Cost,   Knob::Order, Knob::RowsAbove,
                           Knob::TileQ,     Knob::TileKv, Knob::Stages, Knob::Warps};

Axis axisOf(Knob knob, int phase = -1) { return {knob, phase, {}}; }

TEST(AxisTest, EachKnobHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const Knob knob : kKnobs) {
    names.insert(knobName(knob));
    EXPECT_EQ(knobFromName(knobName(knob)), knob);
  }
  EXPECT_EQ(names.size(), std::size(kKnobs));
  EXPECT_EQ(knobFromName("tiles"), std::nullopt);
  const std::vector<config::PhaseConfig> phases{{.name = "wide"}, {.name = "narrow"}};
  EXPECT_EQ(axisName(axisOf(Knob::TileQ, 1), phases), "narrow.tile_q");
  EXPECT_EQ(axisName(axisOf(Knob::Chunk), phases), "chunk_tokens");
}

TEST(AxisTest, ValuesAreReadAsTheyAreWritten) {
  const auto roundTrip = [](Knob knob, int value) {
    const auto read = valueFromName(axisOf(knob), valueName(axisOf(knob), value));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, value) << knobName(knob);
  };
  for (int preset = 0; preset < static_cast<int>(costPresets().size()); ++preset)
    roundTrip(Knob::Cost, preset);
#define DEFT_ROUND_TRIP(ID, ...) roundTrip(Knob::Partition, static_cast<int>(spec::Partition::ID));
  DEFT_PARTITIONS(DEFT_ROUND_TRIP)
#undef DEFT_ROUND_TRIP
  for (const config::Order order : config::kAllOrders)
    roundTrip(Knob::Order, static_cast<int>(order));
  for (const Knob knob : {Knob::Chunk, Knob::RowsAbove, Knob::TileQ, Knob::TileKv, Knob::Stages, Knob::Warps})
    roundTrip(knob, 4);
}

TEST(AxisTest, WhatIsNoValueIsSaid) {
  const auto said = [](Knob knob, const char *text) {
    const auto value = valueFromName(axisOf(knob), text);
    return value ? "a value" : value.error().message;
  };
  EXPECT_EQ(said(Knob::Chunk, "0"), "a value") << "open";
  EXPECT_EQ(said(Knob::TileQ, std::to_string(spec::kMaxTile).c_str()), "a value");
  EXPECT_EQ(said(Knob::TileQ, "0"), "tile_q = 0 is not between 1 and " + std::to_string(spec::kMaxTile));
  for (const char *const text : {"", "4x", " 4", "4.0", "99999999999"})
    EXPECT_EQ(said(Knob::Warps, text), "`" + std::string(text) + "` is not a number for warps");
  EXPECT_EQ(said(Knob::Order, "mixd"), "no order `mixd`");
  const auto near = valueFromName(axisOf(Knob::Cost), "dear_item");
  ASSERT_FALSE(near);
  EXPECT_EQ(near.error().hint, "did you mean `dear_items`?");
  const auto hint = [](Knob knob, const char *text) {
    const auto value = valueFromName(axisOf(knob), text);
    return value ? "a value" : value.error().hint;
  };
  EXPECT_EQ(hint(Knob::Partition, "fltten"), "did you mean `flatten`?");
  EXPECT_EQ(hint(Knob::Partition, "rows"),
            "it is one of query, node, node_chunk, flatten, cascade, greedy, union, auto");
  EXPECT_EQ(hint(Knob::Order, "mixd"), "did you mean `mixed`?");
  EXPECT_EQ(hint(Knob::Order, "backwards"), "it is one of from_root, alternate, mixed");
  EXPECT_EQ(hint(Knob::Cost, "x"),
            "it is one of machine, dear_items, cheap_items, dear_rereads, dear_partials");
}

TEST(AxisTest, PresetsChangeThePricesThatTheyName) {
  const config::CostCoefficients machine;
  for (const CostPreset &preset : costPresets()) {
    const config::CostCoefficients cost = withPreset(machine, preset);
    // Rates are bytes a time: what is dearer is slower.
    EXPECT_DOUBLE_EQ(cost.itemUs / machine.itemUs, preset.item) << preset.name;
    EXPECT_DOUBLE_EQ(machine.againGBs / cost.againGBs, preset.again) << preset.name;
    EXPECT_DOUBLE_EQ(machine.partialGBs / cost.partialGBs, preset.partial) << preset.name;
    EXPECT_EQ(cost.stepUs, machine.stepUs) << preset.name;
  }
  EXPECT_EQ(withPreset(machine, costPresets()[0]), machine) << "the first one is the machine's own";
}

} // namespace
} // namespace deft::space
