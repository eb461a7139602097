#include "tuner/report/Axis.h"

#include "compiler/support/Numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace deft::report {

using support::Svg;

namespace {

constexpr double kTicks[] = {0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1,  1.1,
                             1.2,  1.3,  1.5, 2,   3,   4,   5,   7,   10,  20,  50,  100};
constexpr double kTickSpace = 20;

} // namespace

RatioAxis::RatioAxis(std::span<const double> ratios, double bottom, double top) : bottom_(bottom), top_(top) {
  for (const double ratio : ratios) {
    low_ = std::min(low_, ratio * 0.95);
    high_ = std::max(high_, ratio * 1.05);
  }
}

double RatioAxis::at(double ratio) const {
  return bottom_ + (top_ - bottom_) * std::log(ratio / low_) / std::log(high_ / low_);
}

double RatioAxis::atOrEnd(double ratio) const { return at(std::clamp(ratio, low_, high_)); }

void RatioAxis::draw(Svg &svg, double left, double right) const {
  std::vector<double> drawn = {at(1)};
  const auto hasSpace = [&](double y) {
    return std::all_of(drawn.begin(), drawn.end(),
                       [&](double other) { return std::abs(y - other) >= kTickSpace; });
  };
  const auto label = [&](double tick, bool isBold) {
    const double y = at(tick);
    std::string text = support::rounded(tick, tick < 0.1 ? 2 : 1);
    if (text.ends_with(".0"))
      text.resize(text.size() - 2);
    svg.text(left - 6, y + 4, text,
             {.size = 11, .fill = isBold ? kInk : "#555555", .anchor = "end", .isBold = isBold});
  };
  for (const double tick : kTicks) {
    if (tick < low_ || tick > high_ || tick == 1 || !hasSpace(at(tick)))
      continue;
    drawn.push_back(at(tick));
    svg.line(left, at(tick), right, at(tick), std::string("stroke=\"") + kLine + "\"");
    label(tick, false);
  }
  svg.line(left, at(1), right, at(1), std::string("stroke=\"") + kInk + "\" stroke-dasharray=\"5 4\"");
  label(1, true);
}

std::string partitionColour(const std::string &partition) {
  // Colours that most people can distinguish.
  static const std::map<std::string, std::string> colours = {
      {"union", "#0072b2"},      {"greedy", "#d55e00"},  {"auto", "#333333"},  {"flatten", "#009e73"},
      {"node_chunk", "#cc79a7"}, {"cascade", "#e69f00"}, {"query", "#56b4e9"}, {"node", "#a08000"}};
  const auto found = colours.find(partition);
  return found == colours.end() ? kGrey : found->second;
}

} // namespace deft::report
