#pragma once

#include "compiler/support/Svg.h"

#include <span>
#include <string>

namespace deft::report {

inline constexpr char kInk[] = "#222222", kGrey[] = "#8a8a8a", kLine[] = "#dddddd";

/// Ratios on a logarithmic scale, from `bottom` up to `top` in pixels; 1 is always on it.
class RatioAxis {
public:
  RatioAxis(std::span<const double> ratios, double bottom, double top);

  double at(double ratio) const;
  /// Of a ratio that it was not made for, the nearer end.
  double atOrEnd(double ratio) const;
  /// Lines and numbers, the line of 1 dashed and named.
  void draw(support::Svg &svg, double left, double right) const;

private:
  double bottom_, top_;
  double low_ = 0.9, high_ = 1.1;
};

/// Of a partition, the same in every plot.
std::string partitionColour(const std::string &partition);

} // namespace deft::report
