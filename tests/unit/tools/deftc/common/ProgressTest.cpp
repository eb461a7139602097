#include "tools/deftc/common/Progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace deft::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;

class ProgressTest : public testing::Test {
protected:
  std::string said(bool isTerminal, std::chrono::milliseconds time) {
    std::ostringstream out, err;
    Context context{out, err, false, false, {}, isTerminal, isTerminal};
    {
      const Underway underway(context, "planning");
      std::this_thread::sleep_for(time);
    }
    EXPECT_EQ(out.str(), "");
    return err.str();
  }
};

TEST_F(ProgressTest, ShortWorkIsDoneInSilence) {
  EXPECT_EQ(said(false, 0ms), "");
  EXPECT_EQ(said(true, 100ms), "");
}

TEST_F(ProgressTest, LongWorkThatSaysNothingIsNamedWithinTwoSeconds) {
  EXPECT_THAT(said(false, 2000ms), MatchesRegex("planning: [12] s so far\n")) << "one plain line";
}

TEST_F(ProgressTest, AQuietCommandSaysNothing) {
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, true, true};
  context.isQuiet = true;
  {
    const Underway underway(context, "planning");
    std::this_thread::sleep_for(1500ms);
  }
  EXPECT_EQ(err.str().find("planning"), std::string::npos);
}

TEST(FittedTest, ALineLeavesTheLastColumnFree) {
  EXPECT_EQ(fitted("planning", 9), "planning");
  EXPECT_EQ(fitted("planning", 8), "plan...");
  EXPECT_EQ(fitted("pl\u00e4ne\u00e4n", 7), "pl\u00e4...");
  EXPECT_EQ(fitted("pl\u00e4nen", 7), "pl\u00e4nen");
}

TEST_F(ProgressTest, ATerminalsLineIsWrittenOverAndWiped) {
  const std::string text = said(true, 2000ms);
  EXPECT_THAT(text, testing::StartsWith("\rplanning: 1 s so far\033[K\rplanning: "));
  EXPECT_THAT(text, testing::EndsWith("\r\033[K"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

} // namespace
} // namespace deft::cli
