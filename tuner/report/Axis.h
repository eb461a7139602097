#pragma once

#include "compiler/support/Svg.h"

#include <span>
#include <string>

namespace deft::report {

inline constexpr char kInk[] = "#222222", kGrey[] = "#8a8a8a", kLine[] = "#dddddd";

/// Ratios on a logarithmic scale, between `bottom` and `top` in pixels; always includes 1.
class RatioAxis {
public:
  RatioAxis(std::span<const double> ratios, double bottom, double top);

  double at(double ratio) const;
  /// Like at(), but a ratio outside of the axis gives the nearer end.
  double atOrEnd(double ratio) const;
  /// Draws lines and numbers; the line of 1 is dashed and has a name.
  void draw(support::Svg &svg, double left, double right) const;

private:
  double bottom_, top_;
  double low_ = 0.9, high_ = 1.1;
};

/// The colour of a partition, the same in every plot.
std::string partitionColour(const std::string &partition);

} // namespace deft::report
