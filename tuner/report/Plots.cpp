#include "tuner/report/Plots.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Family.h"
#include "compiler/support/Numbers.h"
#include "tuner/report/Axis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace deft::report {

using support::rounded;
using support::Svg;

namespace {

constexpr double kLeft = 52, kRight = 16, kTop = 34, kAxisName = 14;

std::string partitionOf(const CandidateData &candidate) {
  return config::partitionName(candidate.config.partition);
}

std::vector<const CandidateData *> timed(const ClassData &one) {
  std::vector<const CandidateData *> found;
  for (const CandidateData &candidate : one.candidates)
    if (candidate.ratio > 0 && candidate.reason.empty() && !candidate.config.phases.empty())
      found.push_back(&candidate);
  return found;
}

std::vector<double> ratiosOf(const std::vector<const CandidateData *> &candidates) {
  std::vector<double> ratios;
  ratios.reserve(candidates.size());
  for (const CandidateData *candidate : candidates)
    ratios.push_back(candidate->ratio);
  return ratios;
}

std::string hint(const CandidateData &candidate) {
  return configText(candidate.config) + ": " + rounded(candidate.ratio, 3) + " of the untuned time" +
         (candidate.isDropped
              ? ", dropped after " + support::counted(candidate.rounds, "measurement", "measurements")
              : "");
}

void heading(Svg &svg, const std::string &text) { svg.text(4, 16, text, {.size = 13, .isBold = true}); }

void circle(Svg &svg, double x, double y, const std::string &colour, bool isHollow, const std::string &title,
            double radius = 4) {
  svg.raw("<circle cx=\"" + rounded(x, 1) + "\" cy=\"" + rounded(y, 1) + "\" r=\"" + rounded(radius, 1) +
          "\" stroke=\"" + colour + "\" stroke-width=\"1.5\" fill=\"" + (isHollow ? "#ffffff" : colour) +
          "\"><title>" + Svg::escaped(title) + "</title></circle>\n");
}

void polyline(Svg &svg, const std::string &points, const std::string &attributes) {
  svg.raw("<polyline points=\"" + points + "\" fill=\"none\" " + attributes + "/>\n");
}

std::string pointText(double x, double y) { return rounded(x, 1) + "," + rounded(y, 1) + " "; }

/// The names of partitions in their colours, in lines from `y` on.
void legend(Svg &svg, const std::set<std::string> &partitions, double left, double right, double y) {
  double x = left;
  for (const std::string &partition : partitions) {
    const double width = 18 + Svg::widthOf(partition, 11) + 8;
    if (x + width > right && x > left) {
      x = left;
      y += 16;
    }
    circle(svg, x + 5, y - 4, partitionColour(partition), false, partition);
    svg.text(x + 14, y, partition, {.size = 11});
    x += width;
  }
}

/// A bar between two values, with end marks, in a row of bars.
void errorBar(Svg &svg, double from, double to, double y) {
  constexpr double kEnd = 4;
  const std::string pen = "stroke=\"#222222\" stroke-width=\"1.2\"";
  svg.line(from, y, to, y, pen);
  svg.line(from, y - kEnd, from, y + kEnd, pen);
  svg.line(to, y - kEnd, to, y + kEnd, pen);
}

/// The range of the middle half of a candidate's rounds; nothing if it had too few.
void spreadBar(Svg &svg, double x, const RatioAxis &axis, const CandidateData &candidate) {
  constexpr double kEnd = 3;
  if (candidate.ratioSpread <= 0 || candidate.ratioSpread >= candidate.ratio)
    return;
  const double low = axis.atOrEnd(candidate.ratio - candidate.ratioSpread),
               high = axis.atOrEnd(candidate.ratio + candidate.ratioSpread);
  const std::string pen = "stroke=\"#555555\" stroke-width=\"1\"";
  svg.line(x, low, x, high, pen);
  svg.line(x - kEnd, low, x + kEnd, low, pen);
  svg.line(x - kEnd, high, x + kEnd, high, pen);
}

std::string chunkName(int chunk) { return chunk > 0 ? std::to_string(chunk) : "unlimited"; }

/// Green for gains, orange for losses, white in between.
std::string heat(double ratio) {
  const double amount = std::clamp(std::log2(ratio) / 1.0, -1.0, 1.0);
  return amount < 0 ? Svg::colour(150, 0.55, 1 + 0.42 * amount) : Svg::colour(28, 0.85, 1 - 0.38 * amount);
}

} // namespace

std::string gainPlot(const SessionData &session) {
  constexpr double kRow = 26, kNames = 230, kWidth = 1040, kBars = 560;
  std::vector<const ClassData *> done;
  double longest = 1;
  for (const ClassData &one : session.classes)
    if (one.isDone() && one.gain > 0) {
      done.push_back(&one);
      longest = std::max(longest, 1 / one.gain);
    }
  if (std::all_of(done.begin(), done.end(), [](const ClassData *one) { return one->keepsDefault; }))
    return {};
  Svg svg;
  heading(svg, "Time of the tuned config, as a share of the untuned one's");
  const auto at = [&](double share) { return kNames + kBars * share / longest; };
  const double bottom = kTop + kRow * static_cast<double>(done.size());
  for (int quarters = 0; quarters / 4.0 <= longest; ++quarters) {
    const double share = quarters / 4.0;
    svg.line(at(share), kTop - 4, at(share), bottom,
             std::string("stroke=\"") + (share == 1 ? kInk : kLine) + "\"");
    svg.text(at(share), bottom + 16, rounded(share, 2), {.size = 11, .fill = "#555555", .anchor = "middle"});
  }
  double y = kTop;
  for (const ClassData *one : done) {
    const double share = 1 / one->gain;
    svg.text(kNames - 8, y + 15, one->name, {.anchor = "end"});
    svg.rect(kNames, y + 3, at(share) - kNames, kRow - 8,
             std::string("fill=\"") + (one->keepsDefault ? "#c8c8c8" : "#4d9f78") + "\"",
             one->name + ": " + rounded(one->untunedUs, 1) + " us untuned, " + rounded(one->tunedUs, 1) +
                 " us tuned");
    if (!one->keepsDefault && one->gainError > 0)
      errorBar(svg, at(share * (1 - one->gainError)), at(std::min(share * (1 + one->gainError), longest)),
               y + kRow / 2 - 1);
    std::string text = one->keepsDefault ? "the untuned config stays" : rounded(one->gain, 2) + "x faster";
    if (!one->keepsDefault && one->gainError > 0)
      text += " (+- " + rounded(100 * one->gainError, 1) + " %)";
    if (one->heldOutGain) {
      text += ", held out " + rounded(*one->heldOutGain, 2) + "x";
      const double x = at(1 / std::max(*one->heldOutGain, 1e-3));
      svg.line(std::min(x, at(longest)), y + 1, std::min(x, at(longest)), y + kRow - 3,
               "stroke=\"#d55e00\" stroke-width=\"2.5\"");
    }
    svg.text(std::max(at(share), at(1)) + 8, y + 15, text, {.size = 11});
    y += kRow;
  }
  return svg.element(kWidth, bottom + 24);
}

std::string pathPlot(const ClassData &one) {
  const auto candidates = timed(one);
  if (candidates.size() < 2)
    return {};
  constexpr double kWidth = 1040, kHeight = 290, kBottom = kHeight - 64;
  Svg svg;
  heading(svg, "The path of the search: time over the untuned config's, candidate after candidate");
  const RatioAxis axis(ratiosOf(candidates), kBottom, kTop);
  axis.draw(svg, kLeft, kWidth - kRight);
  const auto total = static_cast<double>(one.candidates.size());
  const double step = (kWidth - kLeft - kRight) / total;
  double best = 0;
  std::string line;
  std::set<std::string> partitions;
  for (std::size_t i = 0; i < one.candidates.size(); ++i) {
    const double x = kLeft + step * (static_cast<double>(i) + 0.5);
    const CandidateData &candidate = one.candidates[i];
    if (candidate.ratio > 0 && candidate.reason.empty() && (best == 0 || candidate.ratio < best)) {
      if (best > 0)
        line += pointText(x, axis.at(best));
      best = candidate.ratio;
    }
    if (best > 0)
      line += pointText(x, axis.at(best));
  }
  polyline(svg, line, "stroke=\"#4d9f78\" stroke-width=\"2\"");
  for (std::size_t i = 0; i < one.candidates.size(); ++i) {
    const double x = kLeft + step * (static_cast<double>(i) + 0.5);
    const CandidateData &candidate = one.candidates[i];
    if (!candidate.reason.empty()) {
      svg.raw("<path d=\"M" + rounded(x - 4, 1) + " " + rounded(kTop - 8, 1) +
              "l8 8m0 -8l-8 8\" stroke=\"#c00000\" stroke-width=\"2\"><title>" +
              Svg::escaped("rejected, " + candidate.stage + ": " + candidate.reason) + "</title></path>\n");
      continue;
    }
    if (candidate.ratio <= 0 || candidate.config.phases.empty())
      continue;
    partitions.insert(partitionOf(candidate));
    const double y = axis.at(candidate.ratio);
    if (candidate.id == one.winnerId)
      svg.raw("<circle cx=\"" + rounded(x, 1) + "\" cy=\"" + rounded(y, 1) +
              "\" r=\"8\" fill=\"none\" stroke=\"#222222\" stroke-width=\"1.5\"/>\n");
    spreadBar(svg, x, axis, candidate);
    circle(svg, x, y, partitionColour(partitionOf(candidate)), candidate.isDropped,
           std::to_string(i + 1) + ", " + candidate.origin + ": " + hint(candidate));
  }
  svg.text((kLeft + kWidth - kRight) / 2, kBottom + 20,
           "candidates 1 to " + std::to_string(one.candidates.size()) +
               "; hollow: dropped early; ring: the winner; cross: rejected; line: the best so far; "
               "bars: half of its rounds",
           {.size = 11, .fill = "#555555", .anchor = "middle"});
  legend(svg, partitions, kLeft, kWidth - kRight, kBottom + 42);
  return svg.element(kWidth, kHeight);
}

std::string chunkPlot(const ClassData &one) {
  const auto candidates = timed(one);
  std::set<int> chunks;
  std::map<std::string, std::map<int, const CandidateData *>> best; // partition -> chunk
  for (const CandidateData *candidate : candidates) {
    chunks.insert(candidate->config.chunkTokens);
    const CandidateData *&slot = best[partitionOf(*candidate)][candidate->config.chunkTokens];
    if (!slot || candidate->ratio < slot->ratio)
      slot = candidate;
  }
  if (chunks.size() < 2)
    return {};
  constexpr double kWidth = 510, kHeight = 310, kBottom = kHeight - 82;
  Svg svg;
  heading(svg, "Time against chunk");
  const RatioAxis axis(ratiosOf(candidates), kBottom, kTop);
  axis.draw(svg, kLeft, kWidth - kRight);
  const double step = (kWidth - kLeft - kRight) / static_cast<double>(chunks.size());
  std::map<int, double> x;
  for (const int chunk : chunks) {
    x[chunk] = kLeft + step * (static_cast<double>(x.size()) + 0.5);
    svg.text(x[chunk], kBottom + 16, chunkName(chunk), {.size = 11, .fill = "#555555", .anchor = "middle"});
  }
  std::set<std::string> partitions;
  for (const auto &[partition, ofChunk] : best) {
    partitions.insert(partition);
    std::string line;
    for (const auto &[chunk, candidate] : ofChunk)
      line += pointText(x[chunk], axis.at(candidate->ratio));
    polyline(svg, line,
             "stroke=\"" + partitionColour(partition) + "\" stroke-width=\"1.5\" stroke-opacity=\"0.7\"");
    for (const auto &[chunk, candidate] : ofChunk)
      spreadBar(svg, x[chunk], axis, *candidate);
    for (const auto &[chunk, candidate] : ofChunk)
      circle(svg, x[chunk], axis.at(candidate->ratio), partitionColour(partition), candidate->isDropped,
             hint(*candidate));
  }
  svg.text((kLeft + kWidth - kRight) / 2, kBottom + 20 + kAxisName, "most tokens of an item",
           {.size = 11, .fill = "#555555", .anchor = "middle"});
  legend(svg, partitions, kLeft, kWidth - kRight, kBottom + 56);
  return svg.element(kWidth, kHeight);
}

bool hasTwoKernels(const ClassData &one) {
  const auto candidates = timed(one);
  return std::any_of(candidates.begin(), candidates.end(), [](const CandidateData *candidate) {
    return candidate->config.phases.size() > 1 && !kernels::countsRowsAlone(candidate->config);
  });
}

std::string tilePlot(const ClassData &one, int phase) {
  const auto candidates = timed(one);
  const auto phaseOf = [&](const CandidateData &candidate) -> const config::PhaseConfig & {
    return phase < 0 ? candidate.config.phases.back() : candidate.config.phases.front();
  };
  std::set<int> tileQs, tileKvs, columns;
  for (const CandidateData *candidate : candidates) {
    tileQs.insert(phaseOf(*candidate).tileQ);
    if (!kernels::countsRowsAlone(candidate->config))
      tileKvs.insert(phaseOf(*candidate).tileKv);
  }
  const bool isByChunk = tileKvs.size() < 2;
  const auto columnOf = [&](const CandidateData &candidate) {
    return isByChunk ? candidate.config.chunkTokens : phaseOf(candidate).tileKv;
  };
  std::map<std::pair<int, int>, const CandidateData *> best; // (tile_q, column)
  for (const CandidateData *candidate : candidates) {
    columns.insert(columnOf(*candidate));
    const CandidateData *&slot = best[{phaseOf(*candidate).tileQ, columnOf(*candidate)}];
    if (!slot || candidate->ratio < slot->ratio)
      slot = candidate;
  }
  if (best.size() < 2)
    return {};
  constexpr double kWidth = 510, kHeight = 310, kBottom = kHeight - 82;
  Svg svg;
  const std::string what = isByChunk ? "tile_q and chunk" : "tile_q and tile_kv";
  const char *of = !hasTwoKernels(one) ? ""
                   : phase < 0         ? " of the phase of few rows"
                                       : " of the phase of many rows";
  heading(svg, "Best time with each " + what + of);
  const double width = std::min(90.0, (kWidth - kLeft - kRight) / static_cast<double>(columns.size()));
  const double height = std::min(44.0, (kBottom - kTop) / static_cast<double>(tileQs.size()));
  double y = kTop;
  for (const int tileQ : tileQs) {
    svg.text(kLeft - 6, y + height / 2 + 4, std::to_string(tileQ),
             {.size = 11, .fill = "#555555", .anchor = "end"});
    double x = kLeft;
    for (const int column : columns) {
      const auto found = best.find({tileQ, column});
      if (found == best.end()) {
        svg.rect(x + 1, y + 1, width - 2, height - 2, "fill=\"#f3f3f3\"", "not tried");
      } else {
        const CandidateData &candidate = *found->second;
        const bool isWinner = candidate.id == one.winnerId;
        svg.rect(x + 1, y + 1, width - 2, height - 2,
                 "fill=\"" + heat(candidate.ratio) + "\"" +
                     (isWinner ? " stroke=\"#222222\" stroke-width=\"2\""
                               : " stroke=\"#cccccc\" stroke-width=\"0.5\""),
                 hint(candidate));
        svg.text(x + width / 2, y + height / 2 + 4, rounded(candidate.ratio, 2),
                 {.size = width < 40 ? 9.0 : 11.0, .anchor = "middle", .isBold = isWinner});
      }
      x += width;
    }
    y += height;
  }
  double x = kLeft;
  for (const int column : columns) {
    svg.text(x + width / 2, y + 16, isByChunk ? chunkName(column) : std::to_string(column),
             {.size = width < 40 ? 9.0 : 11.0, .fill = "#555555", .anchor = "middle"});
    x += width;
  }
  svg.text(kLeft + width * static_cast<double>(columns.size()) / 2, y + 20 + kAxisName,
           isByChunk ? "most tokens of an item" : "tile_kv, tokens",
           {.size = 11, .fill = "#555555", .anchor = "middle"});
  svg.text(14, kTop + height * static_cast<double>(tileQs.size()) / 2, "tile_q, rows",
           {.size = 11, .fill = "#555555", .anchor = "middle", .isVertical = true});
  return svg.element(kWidth, kHeight);
}

} // namespace deft::report
