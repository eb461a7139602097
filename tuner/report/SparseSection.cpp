#include "tuner/report/SparseSection.h"

#include "compiler/kernels/SparsePhase.h"
#include "compiler/support/Numbers.h"
#include "compiler/support/Svg.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace deft::report {

using sparse::TunedLists;
using support::counted;
using support::rounded;
using support::withSeparators;

namespace {

/// From this tuning and earlier ones.
std::vector<TunedLists> allLists(const sparse::TuneReport &report) {
  std::vector<TunedLists> all = report.lists;
  all.insert(all.end(), report.known.begin(), report.known.end());
  std::sort(all.begin(), all.end(), [](const TunedLists &a, const TunedLists &b) {
    return std::pair(a.lists.budget, a.lists.queries) < std::pair(b.lists.budget, b.lists.queries);
  });
  return all;
}

std::string tileText(const sparse::TuneReport &report) {
  const std::string text = "Lists are read by " + kernels::sparseTileText(report.tile);
  if (report.isPackaged)
    return text + ", those of the package, so only cuts are tuned. ";
  if (kernels::haveSameSparseTile(report.tile, report.untunedTile))
    return text + ", the rule's. ";
  return text + ", in place of the rule's " + kernels::sparseTileText(report.untunedTile) + ". ";
}

std::string rowOf(const TunedLists &one, bool isKnown) {
  const auto cell = [](const std::string &text) { return "<td class=\"n\">" + text + "</td>"; };
  return "<tr>" + cell(withSeparators(one.lists.budget)) + cell(withSeparators(one.lists.queries)) +
         cell(rounded(one.untunedUs, 2)) + cell(rounded(one.tunedUs, 2)) +
         cell(rounded(one.gain(), 3) + "x") +
         cell(one.itemTokens > 0   ? withSeparators(one.itemTokens)
              : one.cutUntuned > 0 ? withSeparators(one.cutUntuned)
                                   : "-") +
         cell(one.cutUntuned > 0 ? withSeparators(one.cutUntuned) : "-") + "<td>" +
         (one.itemTokens > 0 ? "tuned" : "the rule's") + (isKnown ? ", known before" : "") + "</td></tr>\n";
}

} // namespace

std::string resultText(const sparse::TuneReport &report) {
  const std::vector<TunedLists> all = allLists(report);
  std::string text = tileText(report);
  if (all.empty())
    return text + "No lists were tuned" +
           (report.ended == measure::Ended::Complete ? "." : " before it ended.");
  double sum = 0, least = all.front().gain(), most = least;
  for (const TunedLists &one : all) {
    sum += std::log(one.gain());
    least = std::min(least, one.gain());
    most = std::max(most, one.gain());
  }
  const auto own =
      std::count_if(all.begin(), all.end(), [](const TunedLists &one) { return one.itemTokens > 0; });
  text += counted(std::ssize(all), "kind of lists is", "kinds of lists are") + " tuned, " +
          rounded(std::exp(sum / static_cast<double>(all.size())), 3) + " times as fast as by the rules";
  if (all.size() > 1)
    text += " in the geometric mean (" + rounded(least, 3) + " to " + rounded(most, 3) + ")";
  text += "; " + counted(own, "has", "have") + " a cut of " + (own == 1 ? "its" : "their") + " own.";
  if (report.ended == measure::Ended::Budget)
    text += " It was stopped by its budget.";
  if (report.ended == measure::Ended::Interrupted)
    text += " It was interrupted.";
  return text;
}

std::string sparseSection(const sparse::TuneReport &report) {
  std::string text = "<h3>Sparse layers</h3>\n<p>" + support::Svg::escaped(resultText(report)) + "</p>\n";
  std::string rows;
  for (const TunedLists &one : allLists(report))
    rows += rowOf(one, std::none_of(report.lists.begin(), report.lists.end(),
                                    [&](const TunedLists &own) { return own.lists == one.lists; }));
  if (!rows.empty())
    text += "<div class=\"wide\"><table>\n<tr><th class=\"n\">budget</th><th class=\"n\">queries</th>"
            "<th class=\"n\">rules us</th><th class=\"n\">tuned us</th><th class=\"n\">gain</th>"
            "<th class=\"n\">items of</th><th class=\"n\">by the rule</th><th>cut</th></tr>\n" +
            rows + "</table></div>\n";
  return text + "<p class=\"quiet\">" + rounded(report.seconds, 0) + " s" +
         (report.path.empty() ? "" : "; kept in " + support::Svg::escaped(report.path)) + "</p>\n";
}

} // namespace deft::report
