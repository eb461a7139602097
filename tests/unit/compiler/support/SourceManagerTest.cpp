#include "compiler/support/SourceManager.h"

#include <gtest/gtest.h>

namespace deft::support {
namespace {

TEST(SourceManagerTest, LinesAndColumnsCountFromOneInCodePoints) {
  SourceManager sources;
  std::uint32_t file = sources.add("f", "ab\n\xc3\xa4x\n");
  auto place = [&](std::uint32_t offset) {
    LineColumn at = sources.lineColumn(file, offset);
    return std::to_string(at.line) + ":" + std::to_string(at.column);
  };
  EXPECT_EQ(place(0), "1:1");
  EXPECT_EQ(place(2), "1:3"); // the end of line belongs to its line
  EXPECT_EQ(place(3), "2:1");
  EXPECT_EQ(place(5), "2:2") << "the two bytes of the umlaut are one column";
  EXPECT_EQ(place(7), "3:1");
  EXPECT_EQ(place(1000), "3:1") << "an offset behind the end is the end";
}

TEST(SourceManagerTest, LineRangeLeavesOutTheEndOfLine) {
  SourceManager sources;
  std::uint32_t file = sources.add("f", "one\r\ntwo");
  EXPECT_EQ(sources.text(sources.lineRange(file, 1)), "one");
  EXPECT_EQ(sources.text(sources.lineRange(file, 6)), "two");
}

TEST(SourceManagerTest, TextsStayWhereTheyAreWhenFilesAreAdded) {
  SourceManager sources;
  std::string_view first = sources.text(sources.add("a", "short"));
  for (int i = 0; i < 100; ++i)
    sources.add("b", "x");
  EXPECT_EQ(first.data(), sources.text(0u).data());
  EXPECT_EQ(first, "short");
}

} // namespace
} // namespace deft::support
