#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/session/Journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;

class ReportCommandTest : public testing::Test {
protected:
  /// As a session writes it that was killed before its first class was done.
  std::string journal(const std::string &name) {
    const std::string path = folder_.path(name);
    auto opened = session::Journal::open(
        path,
        {{"event", "session"}, {"version", session::kJournalVersion}, {"identity", name}, {"variant", name}},
        false);
    EXPECT_TRUE(opened) << opened.error().message;
    opened->write({{"event", "class"}, {"class", "c1-t14-q6-s3-d2-f0"}, {"default", "x"}});
    return path;
  }

  module_cache::TestFolder folder_;
};

TEST_F(ReportCommandTest, JournalsBecomeOnePage) {
  const std::string one = journal("one.jsonl"), two = journal("two.jsonl"), page = folder_.path("page.html");
  const test::Outcome outcome = test::runDeftc({"report", one, two, "-o", page});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("report: " + page));
  std::ifstream file(page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("<h2>one.jsonl on "));
  EXPECT_THAT(text, HasSubstr("<h2>two.jsonl on "));
  EXPECT_THAT(text, HasSubstr("not ended: it was killed, or runs still"));
  EXPECT_THAT(text, HasSubstr("The session ended before this class was finished"));
}

TEST_F(ReportCommandTest, ATornLastLineIsLeftOut) {
  const std::string path = journal("torn.jsonl");
  std::ofstream(path, std::ios::app) << "{\"sum\":\"0000";
  const test::Outcome outcome = test::runDeftc({"report", path, "-o", "-"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("</html>"));
}

TEST_F(ReportCommandTest, WhatIsNoJournalIsAnError) {
  const std::string path = folder_.path("note.txt");
  std::ofstream(path) << "hello\n";
  const test::Outcome outcome = test::runDeftc({"report", path});
  EXPECT_EQ(outcome.code, kExitDiagnostics);
  EXPECT_THAT(outcome.err, HasSubstr("is no journal of a tuning session"));
  EXPECT_NE(test::runDeftc({"report", folder_.path("nothing")}).code, kExitOk);
  EXPECT_EQ(test::runDeftc({"report"}).code, kExitUsage);
}

} // namespace
} // namespace deft::cli
