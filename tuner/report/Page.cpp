#include "tuner/report/Page.h"

#include "compiler/support/Numbers.h"
#include "compiler/support/Svg.h"
#include "runtime/config_cache/TreeClass.h"
#include "tuner/report/Plots.h"
#include "tuner/report/ResultText.h"
#include "tuner/report/SparseSection.h"

#include <algorithm>

namespace deft::report {

using support::counted;
using support::rounded;
using support::withSeparators;

namespace {

// The policy forbids everything that a self-contained page does not need, whatever a journal contains.
constexpr char kHead[] = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>deftc: tuning report</title>
<style>
:root { color-scheme: light; }
body { font: 15px/1.5 Helvetica, Arial, 'DejaVu Sans', sans-serif; color: #222; background: #fff; max-width: 1060px; margin: 24px auto; padding: 0 16px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 6px; border-bottom: 1px solid #ddd; }
h3 { font-size: 16px; margin: 28px 0 2px; } p { margin: 4px 0 10px; } p.result { font-size: 17px; } .quiet { color: #666; }
table { border-collapse: collapse; margin: 8px 0 14px; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: 3px 12px 3px 0; border-bottom: 1px solid #eee; }
th { font-weight: 600; color: #555; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr.winner td { font-weight: 600; background: #eef6f1; } td.reason { white-space: pre-wrap; max-width: 560px; overflow-wrap: anywhere; }
code { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; }
td code, h3 code { white-space: nowrap; } h3 code { font-size: 16px; }
.wide { overflow-x: auto; } .plots { display: flex; flex-wrap: wrap; gap: 8px 20px; }
svg { max-width: 100%; height: auto; } summary { cursor: pointer; color: #0050a0; margin: 4px 0; }
@media print { details > * { display: block; } h3 { break-after: avoid; } }
</style>
</head>
<body>
)";

std::string escaped(const std::string &text) { return support::Svg::escaped(text); }

std::string row(const std::string &name, const std::string &value) {
  return value.empty() ? "" : "<tr><th>" + name + "</th><td>" + escaped(value) + "</td></tr>\n";
}

std::string endText(const SessionData &session) {
  if (session.ended == "complete")
    return "complete";
  if (session.ended == "budget")
    return "stopped by its budget";
  if (session.ended == "interrupted")
    return "interrupted";
  return session.ended.empty() ? "not ended: it was killed, or runs still" : session.ended;
}

std::string spaceText(const SessionData &session) {
  if (session.spaceAll == 0)
    return {};
  std::string text =
      withSeparators(session.spaceAll) + " configs; " + withSeparators(session.spaceLegal) + " can be run";
  for (std::size_t i = 0; i < session.broken.size(); ++i)
    text += (i == 0 ? "; thrown out by " : ", ") + session.broken[i].first + " " +
            withSeparators(session.broken[i].second);
  return text;
}

/// `deftc tune --sparse`: without trees.
bool isOfSparseAlone(const SessionData &session) { return session.sparse && session.classes.empty(); }

std::string facts(const SessionData &session) {
  std::string work = endText(session);
  if (!isOfSparseAlone(session))
    work += "; " + counted(session.made, "measurement", "measurements") + " made, " +
            withSeparators(session.reused) + " reused";
  if (session.seconds > 0)
    work += ", " + rounded(session.seconds, 0) + " s";
  if (session.resumed > 0)
    work += "; gone on with " + counted(session.resumed, "time", "times");
  return "<table>\n" + row("attention", session.variant) + row("signature", session.signature) +
         row("device", session.device) + row("driver", session.driver) + row("strategy", session.strategy) +
         row("space", spaceText(session)) + row("session", work) + row("started", session.started) +
         row("deftc",
             session.deftcVersion + (session.kernelHash.empty() ? "" : ", kernels " + session.kernelHash)) +
         row("journal", session.path) + "</table>\n";
}

std::string winnerText(const ClassData &one) {
  const CandidateData *winner = one.find(one.winnerId);
  if (one.keepsDefault || !winner)
    return "untuned";
  return configText(winner->config);
}

std::string overview(const SessionData &session) {
  const std::string gains = gainPlot(session);
  std::string text =
      (gains.empty() ? "" : "<div class=\"wide\">" + gains + "</div>\n") +
      std::string("<div class=\"wide\"><table>\n<tr><th>class</th>"
                  "<th class=\"n\">trees</th><th class=\"n\">tried</th><th class=\"n\">rejected</th>"
                  "<th class=\"n\">untuned us</th><th class=\"n\">tuned us</th><th class=\"n\">gain</th>"
                  "<th class=\"n\">held out</th><th>config</th><th>note</th></tr>\n");
  for (const ClassData &one : session.classes) {
    const auto searched =
        std::count_if(one.trees.begin(), one.trees.end(), [](const TreeData &t) { return !t.isHeldOut; });
    const auto rejected = std::count_if(one.candidates.begin(), one.candidates.end(),
                                        [](const CandidateData &c) { return !c.reason.empty(); });
    text += "<tr><td><a href=\"#" + escaped(one.name) + "\"><code>" + escaped(one.name) +
            "</code></a></td><td class=\"n\">" + std::to_string(searched) + "</td><td class=\"n\">" +
            std::to_string(one.candidates.size()) + "</td><td class=\"n\">" + std::to_string(rejected) +
            "</td>";
    if (!one.isDone()) {
      text += std::string("<td colspan=\"6\" class=\"quiet\">") +
              (one.isBegun() ? "not finished" : "not begun") + "</td></tr>\n";
      continue;
    }
    text += "<td class=\"n\">" + rounded(one.untunedUs, 1) + "</td><td class=\"n\">" +
            rounded(one.tunedUs, 1) + "</td><td class=\"n\">" + rounded(one.gain, 2) + "x" +
            (one.gainError > 0 ? " &plusmn;" + rounded(100 * one.gainError, 1) + " %" : "") +
            "</td><td class=\"n\">" + (one.heldOutGain ? rounded(*one.heldOutGain, 2) + "x" : "-") +
            "</td><td>" + escaped(winnerText(one)) + "</td><td>" + escaped(one.note) +
            (one.isCut ? one.note.empty() ? "cut short by its budget" : "; cut short by its budget" : "") +
            "</td></tr>\n";
  }
  return text + "</table></div>\n";
}

std::string treesText(const ClassData &one) {
  std::string text;
  for (const TreeData &tree : one.trees)
    text += (text.empty() ? "" : "; ") + std::string(tree.isHeldOut ? "held out: " : "") + tree.name + " (" +
            counted(tree.queries, "query", "queries") + ", " + counted(tree.tokens, "token", "tokens") + ")";
  return text;
}

std::string stateOf(const ClassData &one, const CandidateData &candidate) {
  if (candidate.id == one.winnerId)
    return "winner";
  if (!candidate.reason.empty())
    return "rejected";
  if (candidate.ratio <= 0)
    return "not timed";
  return candidate.isDropped ? "dropped" : "scored";
}

std::string candidatesTable(const ClassData &one) {
  std::vector<const CandidateData *> sorted;
  sorted.reserve(one.candidates.size());
  for (const CandidateData &candidate : one.candidates)
    sorted.push_back(&candidate);
  // Candidates without times come last; equal ones stay in order of appearance.
  const auto rank = [](const CandidateData *one) {
    return std::pair(one->ratio > 0 ? one->ratio : 1e9, one);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](const CandidateData *a, const CandidateData *b) { return rank(a) < rank(b); });
  std::string text =
      "<details><summary>" + counted(static_cast<long long>(sorted.size()), "candidate", "candidates") +
      ", fastest first</summary>\n<div class=\"wide\"><table>\n<tr><th class=\"n\">of untuned</th>"
      "<th class=\"n\">predicted us</th><th class=\"n\">times</th><th>config</th><th>from</th><th>state</th>"
      "<th>id</th></tr>\n";
  for (const CandidateData *candidate : sorted)
    text += std::string(candidate->id == one.winnerId ? "<tr class=\"winner\">" : "<tr>") +
            "<td class=\"n\">" + (candidate->ratio > 0 ? rounded(candidate->ratio, 3) : "-") +
            "</td><td class=\"n\">" +
            (candidate->predictedUs > 0 ? rounded(candidate->predictedUs, 1) : "-") +
            "</td><td class=\"n\">" + std::to_string(candidate->rounds) + "</td><td>" +
            escaped(configText(candidate->config)) + "</td><td>" + escaped(candidate->origin) + "</td><td>" +
            stateOf(one, *candidate) + "</td><td><code>" + escaped(candidate->id) + "</code></td></tr>\n";
  return text + "</table></div></details>\n";
}

std::string rejectedTable(const ClassData &one) {
  std::string rows;
  for (const CandidateData &candidate : one.candidates)
    if (!candidate.reason.empty())
      rows += "<tr><td>" + escaped(configText(candidate.config)) + "</td><td>" + escaped(candidate.stage) +
              "</td><td class=\"reason\">" + escaped(candidate.reason) + "</td></tr>\n";
  if (rows.empty())
    return "<p class=\"quiet\">No candidate was rejected.</p>\n";
  return "<p>Rejected, and not tried again:</p>\n<div "
         "class=\"wide\"><table>\n<tr><th>config</th><th>at</th><th>reason</th></tr>\n" +
         rows + "</table></div>\n";
}

std::string pictureOf(const SessionData &session, const ClassData &one, const PlanPicture &winningPlan) {
  const std::string picture = winningPlan ? winningPlan(session, one) : "";
  return picture.empty() ? ""
                         : "<details open><summary>How the winner cuts the first tree</summary>\n"
                           "<div class=\"wide\">" +
                               picture + "</div></details>\n";
}

/// Wraps drawings in a block of a page, or returns nothing if there are none.
std::string within(const std::string &kind, const std::string &drawings) {
  return drawings.empty() ? "" : "<div class=\"" + kind + "\">" + drawings + "</div>\n";
}

std::string classSection(const SessionData &session, const ClassData &one, const PlanPicture &winningPlan) {
  std::string text = "<h3 id=\"" + escaped(one.name) + "\"><code>" + escaped(one.name) + "</code></h3>\n";
  if (const auto parsed = config_cache::TreeClass::parse(one.name))
    text += "<p>" +
            escaped(config_cache::familyName(config_cache::familyOf(*parsed)) + ": " +
                    config_cache::describe(*parsed)) +
            "</p>\n";
  text += "<p class=\"quiet\">" + escaped(treesText(one)) + "</p>\n";
  if (one.isDone())
    text += "<p>" +
            escaped(one.keepsDefault
                        ? "The untuned config stays"
                        : winnerText(one) + ": " + rounded(one.gain, 2) + " times faster than untuned, " +
                              rounded(one.tunedUs, 1) + " us in place of " + rounded(one.untunedUs, 1)) +
            (one.note.empty() ? "" : escaped(": " + one.note)) + ". " +
            (one.isCut ? "The search was cut short by its time budget. " : "") + rounded(one.seconds, 0) +
            " s.</p>\n";
  else
    return text + "<p>The session ended before this class was " +
           (one.isBegun() ? "finished.</p>\n" + within("wide", pathPlot(one)) + rejectedTable(one) +
                                candidatesTable(one)
                          : std::string("begun.</p>\n"));
  text += pictureOf(session, one, winningPlan) + within("wide", pathPlot(one)) +
          within("plots", chunkPlot(one) + tilePlot(one, 0) + (hasTwoKernels(one) ? tilePlot(one, -1) : ""));
  return text + rejectedTable(one) + candidatesTable(one);
}

} // namespace

std::string renderPage(const std::vector<SessionData> &sessions, const PlanPicture &winningPlan) {
  std::string page = kHead;
  page += "<h1>Tuning report</h1>\n<p class=\"quiet\">Times of candidates are shares of the untuned "
          "config's, measured in the "
          "same rounds. Move over a point to read its config.</p>\n";
  for (const SessionData &session : sessions) {
    const std::string result = isOfSparseAlone(session) ? resultText(*session.sparse) : resultText(session);
    page += "<h2>" + escaped(session.variant + " on " + session.device) + "</h2>\n<p class=\"result\">" +
            escaped(result) + "</p>\n";
    if (!session.command.empty())
      page += "<p>Made, and gone on with, by <code>" + escaped(session.command) + "</code></p>\n";
    page += facts(session);
    if (!isOfSparseAlone(session))
      page += overview(session);
    if (session.sparse)
      page += sparseSection(*session.sparse);
    for (const ClassData &one : session.classes)
      page += classSection(session, one, winningPlan);
  }
  return page + "</body>\n</html>\n";
}

} // namespace deft::report
