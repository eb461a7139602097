#include "compiler/support/Svg.h"

#include <gtest/gtest.h>

namespace deft::support {
namespace {

TEST(SvgTest, TextIsEscapedWhereverItStands) {
  Svg svg;
  svg.text(1, 2, "a < b & \"c\"", {});
  svg.rect(0, 0.5, 10, 20.126, "fill=\"red\"", "<script>");
  const std::string element = svg.element(100, 50);
  EXPECT_NE(element.find(">a &lt; b &amp; &quot;c&quot;</text>"), std::string::npos) << element;
  EXPECT_NE(
      element.find(
          "<rect x=\"0\" y=\"0.5\" width=\"10\" height=\"20.13\" fill=\"red\"><title>&lt;script&gt;</title>"),
      std::string::npos)
      << element;
  EXPECT_EQ(element.find("<script>"), std::string::npos);
}

TEST(SvgTest, WhatIsNoUtf8IsReplacedSoThatTheXmlIsWellFormed) {
  const std::string none = "\xEF\xBF\xBD";
  EXPECT_EQ(Svg::escaped("t\xff.json"), "t" + none + ".json");
  EXPECT_EQ(Svg::escaped("\xc3"), none) << "cut off";
  EXPECT_EQ(Svg::escaped("\xc0\xaf"), none + none) << "a longer form than is needed";
  EXPECT_EQ(Svg::escaped("\xe0\x80\x80"), none + none + none);
  EXPECT_EQ(Svg::escaped("\xed\xa0\x80"), none + none + none) << "a surrogate";
  EXPECT_EQ(Svg::escaped("\xf4\x90\x80\x80"), none + none + none + none) << "above Unicode";
  EXPECT_EQ(Svg::escaped("\xef\xbf\xbf"), none) << "U+FFFF is no character of XML";
  EXPECT_EQ(Svg::escaped("\xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf \xc3\xa4"),
            "\xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf \xc3\xa4");
  EXPECT_EQ(Svg::escaped("a\x1b\n\x7f"), "a  \x7f");
}

TEST(SvgTest, AFileIsTheElementOnWhite) {
  Svg svg;
  svg.line(0, 0, 1, 1, "stroke=\"black\"");
  const std::string file = svg.file(10, 20);
  EXPECT_EQ(
      file.find("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"20\" viewBox=\"0 0 10 20\""),
      0u);
  EXPECT_LT(file.find("fill=\"white\""), file.find("<line "));
  EXPECT_EQ(svg.element(10, 20).find("fill=\"white\""), std::string::npos);
}

TEST(SvgTest, APolygonHasItsCorners) {
  Svg svg;
  svg.polygon({{0, 1.5}, {2, 3}, {0, 3}}, "fill=\"red\"", "a & b");
  EXPECT_NE(svg.element(10, 10).find(
                "<polygon points=\"0,1.5 2,3 0,3\" fill=\"red\"><title>a &amp; b</title></polygon>"),
            std::string::npos);
}

TEST(SvgTest, ColoursAreHexadecimal) {
  EXPECT_EQ(Svg::colour(0, 1, 0.5), "#ff0000");
  EXPECT_EQ(Svg::colour(120, 1, 0.25), "#008000");
  EXPECT_EQ(Svg::colour(200, 0, 1), "#ffffff");
}

TEST(SvgTest, LettersOfSeveralBytesCountOnce) {
  EXPECT_DOUBLE_EQ(Svg::widthOf("ab", 10), 12);
  EXPECT_DOUBLE_EQ(Svg::widthOf("\u00e4b", 10), 12);
}

} // namespace
} // namespace deft::support
