#include "compiler/support/Svg.h"

#include "compiler/support/Numbers.h"
#include "compiler/support/Utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace deft::support {
namespace {

/// Two decimals are a hundredth of a pixel; trailing zeros only make files long.
std::string number(double value) {
  std::string text = rounded(value, 2);
  while (text.back() == '0')
    text.pop_back();
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string attribute(const char *name, double value) {
  return std::string(name) + "=\"" + number(value) + "\" ";
}

/// What is shown beside the pointer, and the end of the element.
std::string endOf(const char *element, const std::string &title) {
  return title.empty() ? "/>\n" : "><title>" + Svg::escaped(title) + "</title></" + element + ">\n";
}

} // namespace

std::string Svg::escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = codePointBytes(text);
    const std::string_view point = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(point.size());
    if (point == "&")
      result += "&amp;";
    else if (point == "<")
      result += "&lt;";
    else if (point == ">")
      result += "&gt;";
    else if (point == "\"")
      result += "&quot;";
    else if (bytes == 0 || point == "\xEF\xBF\xBE" || point == "\xEF\xBF\xBF") // no characters of XML
      result += "\xEF\xBF\xBD"; // U+FFFD stands for what is none
    else if (static_cast<unsigned char>(point[0]) < ' ')
      result += ' ';
    else
      result += point;
  }
  return result;
}

double Svg::widthOf(const std::string &text, double size) {
  return static_cast<double>(countCodePoints(text)) * size * kLetter;
}

void Svg::rect(double x, double y, double width, double height, const std::string &attributes,
               const std::string &title) {
  body_ += "<rect " + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + attributes;
  body_ += endOf("rect", title);
}

void Svg::polygon(std::initializer_list<Point> corners, const std::string &attributes,
                  const std::string &title) {
  body_ += "<polygon points=\"";
  for (const char *before = ""; const Point &corner : corners) {
    body_ += before + number(corner.x) + "," + number(corner.y);
    before = " ";
  }
  body_ += "\" " + attributes + endOf("polygon", title);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string &attributes) {
  body_ += "<line " + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) +
           attributes + "/>\n";
}

void Svg::text(double x, double y, const std::string &text, const TextStyle &style) {
  std::string common = attribute("x", x) + attribute("y", y) + attribute("font-size", style.size);
  if (style.isVertical)
    common += "transform=\"rotate(-90 " + number(x) + " " + number(y) + ")\" ";
  if (std::string_view(style.anchor) != "start")
    common += std::string("text-anchor=\"") + style.anchor + "\" ";
  if (style.isBold)
    common += "font-weight=\"bold\" ";
  const auto add = [&](const std::string &paint) {
    body_ += "<text " + common + paint + ">" + escaped(text) + "</text>\n";
  };
  if (style.hasHalo) // below the letters; not every viewer knows paint-order
    add("fill=\"none\" stroke=\"#ffffff\" stroke-opacity=\"0.8\" stroke-width=\"3\"");
  add(std::string("fill=\"") + style.fill + "\"");
}

/// Of hue, saturation and lightness, as #rrggbb: not every viewer knows hsl().
std::string Svg::colour(double hueDegrees, double saturation, double lightness) {
  const double reach = saturation * std::min(lightness, 1 - lightness);
  std::string text = "#";
  for (const double shift : {0.0, 8.0, 4.0}) {
    const double k = std::fmod(shift + hueDegrees / 30, 12);
    const double value = lightness - reach * std::clamp(std::min(k - 3, 9 - k), -1.0, 1.0);
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(std::lround(255 * value)) & 0xffU);
    text += digits;
  }
  return text;
}

std::string Svg::element(double width, double height) const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + attribute("width", width) +
         attribute("height", height) + "viewBox=\"0 0 " + number(width) + " " + number(height) +
         "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n" + body_ + "</svg>\n";
}

std::string Svg::file(double width, double height) const {
  Svg page;
  page.raw("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + body_);
  return page.element(width, height);
}

} // namespace deft::support
