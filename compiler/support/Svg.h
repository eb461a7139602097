#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace deft::support {

/// Writes an SVG, one element after the other. Coordinates are in pixels.
class Svg {
public:
  static constexpr double kLetter = 0.6; ///< width of a letter of the font, as a share of its size

  struct TextStyle {
    double size = 12;
    const char *fill = "#222";
    const char *anchor = "start";
    bool isBold = false;
    bool isVertical = false; ///< reads upwards
    bool hasHalo = false;    ///< stays readable on colours
  };

  void rect(double x, double y, double width, double height, const std::string &attributes,
            const std::string &title = {});
  struct Point {
    double x, y;
  };
  void polygon(std::initializer_list<Point> corners, const std::string &attributes,
               const std::string &title = {});
  void line(double x1, double y1, double x2, double y2, const std::string &attributes);
  void text(double x, double y, const std::string &text, const TextStyle &style);
  void raw(std::string_view text) { body_ += text; }

  /// As an element inside a page.
  std::string element(double width, double height) const;
  /// As a separate file with a white background.
  std::string file(double width, double height) const;

  static std::string colour(double hueDegrees, double saturation, double lightness);
  static std::string escaped(std::string_view text);
  static double widthOf(const std::string &text, double size);

private:
  std::string body_;
};

} // namespace deft::support
