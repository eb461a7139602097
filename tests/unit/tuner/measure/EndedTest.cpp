#include "tuner/measure/Ended.h"

#include <gtest/gtest.h>

namespace deft::measure {
namespace {

TEST(EndedTest, JournalsThatWereWrittenBeforeHaveTheseNames) {
  EXPECT_STREQ(toString(Ended::Complete), "complete");
  EXPECT_STREQ(toString(Ended::Budget), "budget");
  EXPECT_STREQ(toString(Ended::Interrupted), "interrupted");
}

} // namespace
} // namespace deft::measure
