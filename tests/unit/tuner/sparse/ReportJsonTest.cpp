#include "tuner/sparse/ReportJson.h"

#include "tests/unit/tuner/sparse/SomeReport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::sparse {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(ReportJsonTest, ComesBackAsItWas) {
  for (const Ended ended : {Ended::Complete, Ended::Budget, Ended::Interrupted}) {
    TuneReport report = someReport();
    report.ended = ended;
    const auto back = tuneReportFromJson(toJson(report));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(toJson(*back), toJson(report));
    EXPECT_EQ(back->ended, ended);
    EXPECT_EQ(back->device, report.device);
    EXPECT_EQ(back->tile.tileKv, 32);
    EXPECT_EQ(back->untunedTile.warps, 4);
    ASSERT_EQ(back->lists.size(), 2u);
    EXPECT_EQ(back->lists[0].lists, (Lists{4096, 8}));
    EXPECT_EQ(back->lists[0].cutUntuned, 512);
    EXPECT_DOUBLE_EQ(back->lists[0].gain(), 1.1);
    EXPECT_EQ(back->known.size(), 1u);
    EXPECT_EQ(back->notes, report.notes);
  }
}

TEST(ReportJsonTest, AnEventIsTheSameWithItsKindAndTime) {
  json event = sparseEvent(someReport());
  EXPECT_EQ(event["event"], "sparse");
  EXPECT_THAT(event["at"].get<std::string>(), testing::EndsWith("Z"));
  EXPECT_EQ(toJson(*tuneReportFromJson(event)), toJson(someReport()));
}

TEST(ReportJsonTest, WhatIsSomethingElseIsAnError) {
  for (const auto &[key, value] : {std::pair<const char *, json>{"lists", 7},
                                   {"signature", "q0"},
                                   {"device", json::object()},
                                   {"tile", {{"tile_q", "x"}}},
                                   {"seconds", nullptr}}) {
    json object = toJson(someReport());
    object[key] = value;
    EXPECT_FALSE(tuneReportFromJson(object)) << key;
    object.erase(key);
    const auto missing = tuneReportFromJson(object);
    ASSERT_FALSE(missing) << key;
    EXPECT_THAT(missing.error().message, HasSubstr("cannot read the results for sparse layers"));
  }
}

} // namespace
} // namespace deft::sparse
