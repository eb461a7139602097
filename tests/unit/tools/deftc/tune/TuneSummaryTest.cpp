#include "tools/deftc/tune/TuneSummary.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

using session::Ended;
using testing::HasSubstr;
using testing::Not;

session::ClassReport doneClass() {
  session::ClassReport one;
  one.treeClass = {14, 6, 3, 2, 0};
  one.trees = 2;
  one.entry = config_cache::someEntry();
  one.isDone = true;
  one.gain = 1.254;
  return one;
}

session::TuneReport someReport() {
  session::TuneReport report;
  report.device = config_cache::h200();
  report.signature = config_cache::someEntry().signature;
  report.classes = {doneClass()};
  report.journal = "/j.jsonl";
  report.made = 1;
  report.reused = 1200;
  report.seconds = 61.25;
  return report;
}

std::string textOf(const session::TuneReport &report) {
  std::ostringstream out;
  printTuneSummary(report, out);
  return out.str();
}

/// The words of the line of a class.
std::string lineOf(const std::string &text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("c1-")) {
      std::istringstream in(line);
      std::string joined;
      for (std::string word; in >> word;)
        joined += (joined.empty() ? "" : " ") + word;
      return joined;
    }
  return "none";
}

TEST(TuneSummaryTest, AClassHasItsTimesItsGainAndItsConfig) {
  session::TuneReport report = someReport();
  const std::string config = "node_chunk, chunk 256, wide sm80 64x64, ";
  EXPECT_THAT(lineOf(textOf(report)),
              testing::StartsWith("c1-t14-q6-s3-d2-f0 2 25.6 20.5 1.25x - " + config));
  session::ClassReport &one = report.classes[0];
  one.heldOutGain = 1.1;
  one.note = "a neighbour's";
  one.entry.isComplete = false;
  EXPECT_THAT(lineOf(textOf(report)), HasSubstr(" 1.25x 1.10x " + config));
  EXPECT_THAT(textOf(report), HasSubstr(" (a neighbour's) (its search was cut short by the budget)\n"));
}

TEST(TuneSummaryTest, AClassThatIsNotDoneHasNoNumbers) {
  session::TuneReport report = someReport();
  report.classes[0].isDone = false;
  EXPECT_EQ(lineOf(textOf(report)), "c1-t14-q6-s3-d2-f0 2 not done");
  report.classes[0].note = "no room";
  EXPECT_EQ(lineOf(textOf(report)), "c1-t14-q6-s3-d2-f0 2 not done: no room");
}

TEST(TuneSummaryTest, TheEndSaysHowItCameAndWhereResultsAre) {
  session::TuneReport report = someReport();
  const std::string complete = textOf(report);
  EXPECT_THAT(complete, HasSubstr("\ncomplete; 1 measurement made, 1,200 reused, 61.2 s\n"));
  EXPECT_THAT(complete, testing::EndsWith("journal: /j.jsonl\n"));
  EXPECT_THAT(complete, Not(HasSubstr("configs: "))) << "nothing was written";
  report.ended = Ended::Budget;
  report.restarts = 2;
  report.configPath = "/c.json";
  report.written = {3, 1, 0, 0, "/c.json.broken"};
  const std::string stopped = textOf(report);
  EXPECT_THAT(stopped, HasSubstr("stopped by its budget; the same command continues it; "));
  EXPECT_THAT(stopped, HasSubstr(" s, 2 restarts after a fault\n"));
  EXPECT_THAT(stopped, HasSubstr("configs: /c.json (3 added, 1 replaced)\n"));
  EXPECT_THAT(stopped, HasSubstr("the broken file that was there is kept in /c.json.broken\n"));
}

} // namespace
} // namespace deft::cli
