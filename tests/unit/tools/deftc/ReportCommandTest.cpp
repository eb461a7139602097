#include "tests/support/RunDeftc.h"
#include "tuner/session/Journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;

class ReportCommandTest : public testing::Test {
protected:
  ReportCommandTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                (std::string("report_") + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ReportCommandTest() override { std::filesystem::remove_all(folder_); }

  /// As a session writes it that was killed before its first class was done.
  std::string journal(const std::string &name) {
    const std::string path = (folder_ / name).string();
    auto opened = session::Journal::open(
        path,
        {{"event", "session"}, {"version", session::kJournalVersion}, {"identity", name}, {"variant", name}},
        false);
    EXPECT_TRUE(opened) << opened.error().message;
    opened->write({{"event", "class"}, {"class", "c1-t14-q6-s3-d2-f0"}, {"default", "x"}});
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(ReportCommandTest, JournalsBecomeOnePage) {
  const std::string one = journal("one.jsonl"), two = journal("two.jsonl"),
                    page = (folder_ / "page.html").string();
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
  const std::string path = (folder_ / "note.txt").string();
  std::ofstream(path) << "hello\n";
  const test::Outcome outcome = test::runDeftc({"report", path});
  EXPECT_EQ(outcome.code, kExitDiagnostics);
  EXPECT_THAT(outcome.err, HasSubstr("is no journal of a tuning session"));
  EXPECT_NE(test::runDeftc({"report", (folder_ / "nothing").string()}).code, kExitOk);
  EXPECT_EQ(test::runDeftc({"report"}).code, kExitUsage);
}

} // namespace
} // namespace deft::cli
