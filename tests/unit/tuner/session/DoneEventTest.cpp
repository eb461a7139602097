#include "tuner/session/DoneEvent.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>

namespace deft::session {
namespace {

ClassReport someReport() {
  ClassReport report;
  report.entry = config_cache::someEntry();
  report.treeClass = report.entry.treeClass;
  report.isDone = true;
  report.gain = 1.25;
  report.gainError = 0.01;
  report.heldOutGain = 1.125;
  report.candidates = 24;
  report.rejected = 2;
  report.note = "the config of a neighbouring class";
  return report;
}

TEST(DoneEventTest, AReportIsThereAgainInTheNextRun) {
  const auto again = reportOfDone(doneEvent(someReport()), config::DeviceKind::Cpu);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->isDone);
  EXPECT_TRUE(again->isFromJournal);
  EXPECT_TRUE(config_cache::areEqual(again->entry, someReport().entry));
  EXPECT_EQ(again->gain, 1.25);
  EXPECT_EQ(again->gainError, 0.01);
  EXPECT_EQ(again->heldOutGain, 1.125);
  EXPECT_EQ(again->candidates, 24);
  EXPECT_EQ(again->rejected, 2);
  EXPECT_EQ(again->note, someReport().note);
}

TEST(DoneEventTest, ASearchThatWasCutShortIsTheEntrysToSay) {
  ClassReport report = someReport();
  EXPECT_EQ(doneEvent(report)["is_cut"], false);
  report.entry.isComplete = false;
  nlohmann::json event = doneEvent(report);
  EXPECT_EQ(event["is_cut"], true);
  EXPECT_FALSE(reportOfDone(event, config::DeviceKind::Cpu)->entry.isComplete);
  event["entry"].erase("complete"); // as older journals have it
  EXPECT_FALSE(reportOfDone(event, config::DeviceKind::Cpu)->entry.isComplete);
}

TEST(DoneEventTest, WhatIsNotUnderstoodIsNoReport) {
  nlohmann::json event = doneEvent(someReport());
  event["gain"] = "much";
  EXPECT_FALSE(reportOfDone(event, config::DeviceKind::Cpu));
  event = doneEvent(someReport());
  event["entry"]["class"] = "c9";
  EXPECT_FALSE(reportOfDone(event, config::DeviceKind::Cpu));
  EXPECT_FALSE(reportOfDone({{"event", "done"}}, config::DeviceKind::Cpu));
}

TEST(DoneEventTest, PeopleReadTheGainAndWhatItHolds) {
  ClassReport report = someReport();
  EXPECT_EQ(resultText(report), "c1-t14-q6-s3-d2-f0: 1.25 times as fast as untuned");
  report.entry.onlyFor.resize(1);
  report.entry.isComplete = false;
  EXPECT_EQ(resultText(report), "c1-t14-q6-s3-d2-f0: 1.25 times as fast as untuned, only on trees like the "
                                "given ones; the search was cut short by its time budget");
  report = someReport();
  report.entry.keepsDefault = true;
  report.note = "nothing measured was faster";
  EXPECT_EQ(resultText(report), "c1-t14-q6-s3-d2-f0: the untuned config stays: nothing measured was faster");
}

} // namespace
} // namespace deft::session
