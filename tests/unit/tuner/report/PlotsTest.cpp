#include "tuner/report/Plots.h"

#include "tests/unit/tuner/report/Events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::report {
namespace {

using testing::HasSubstr;
using testing::Not;

ClassData finishedClass() { return sessionOf(sessionEvents(), "a.jsonl")->classes[0]; }

std::size_t count(const std::string &text, const std::string &part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(PlotsTest, ThePathShowsEveryCandidateOnce) {
  const std::string plot = pathPlot(finishedClass());
  EXPECT_THAT(plot, HasSubstr("1, default: auto, chunk unlimited"));
  EXPECT_THAT(plot, HasSubstr("2, guided: union, chunk 256"));
  EXPECT_THAT(plot, HasSubstr("dropped after 2 measurements"));
  EXPECT_THAT(plot, HasSubstr("rejected, check: error 0.5 &lt;b&gt;"));
  EXPECT_EQ(count(plot, "r=\"8\""), 1u); // the winner's ring
}

TEST(PlotsTest, ChunksAreInOrderTheOpenOneFirst) {
  const std::string plot = chunkPlot(finishedClass());
  EXPECT_LT(plot.find(">unlimited<"), plot.find(">256<"));
  EXPECT_LT(plot.find(">256<"), plot.find(">512<"));
  EXPECT_EQ(count(plot, "<polyline"), 3u); // one a partition that was timed
}

TEST(PlotsTest, TilesAreAMapOfBothSizesOrOfRowsAndChunk) {
  const std::string both = tilePlot(finishedClass(), 0);
  EXPECT_THAT(both, HasSubstr("tile_q and tile_kv"));
  EXPECT_THAT(both, HasSubstr(">0.81<"));
  EXPECT_THAT(both, HasSubstr("not tried"));
  ClassData one = finishedClass();
  for (CandidateData &candidate : one.candidates)
    candidate.config.phases[0].tileKv = 64;
  EXPECT_THAT(tilePlot(one, 0), HasSubstr("tile_q and chunk"));
  EXPECT_FALSE(hasTwoKernels(one));
}

TEST(PlotsTest, NothingTimedGivesNoPlot) {
  ClassData one = finishedClass();
  for (CandidateData &candidate : one.candidates)
    candidate.ratio = 0;
  EXPECT_EQ(pathPlot(one), "");
  EXPECT_EQ(chunkPlot(one), "");
  EXPECT_EQ(tilePlot(one, 0), "");
  EXPECT_EQ(gainPlot({}), "");
}

TEST(PlotsTest, GainsAreBarsOfFinishedClasses) {
  const std::string plot = gainPlot(*sessionOf(sessionEvents(), "a.jsonl"));
  EXPECT_THAT(plot, HasSubstr(kClass));
  EXPECT_THAT(plot, HasSubstr("1.25x faster (+- 1.0 %), held out 1.20x"));
  EXPECT_THAT(plot, Not(HasSubstr("c1-t15-q6-s3-d2-f0")));
}

} // namespace
} // namespace deft::report
