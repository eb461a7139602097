#include "tools/deftc/tune/TuneSparse.h"

#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/common/SelectText.h"
#include "tools/deftc/tune/CatchInterrupts.h"
#include "tools/deftc/tune/TuneSummary.h"
#include "tuner/report/SessionData.h"
#include "tuner/session/Journal.h"
#include "tuner/sparse/ReportJson.h"
#include "tuner/sparse/TuneApart.h"

#include "compiler/kernels/SparsePhase.h"
#include "compiler/support/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <utility>

namespace deft::cli {
namespace {

std::string tileText(const sparse::TuneReport &report) {
  std::string text = sparseTileText(report.tile);
  if (report.isPackaged)
    return text + "; a package has one kernel for them, so only cuts are tuned";
  if (kernels::haveSameSparseTile(report.tile, report.untunedTile))
    text += ", the rule's";
  else if (report.lists.empty())
    text += ", chosen before";
  else
    text += ", " + rounded(report.tileGain, 3) + "x the rule's " + sparseTileText(report.untunedTile);
  return text + (report.tiles > 1 ? "; " + std::to_string(report.tiles) + " compared" : "");
}

void print(const sparse::TuneReport &report, std::ostream &out) {
  out << "sparse layers, " << report.device.text() << ", " << report.signature.text() << '\n'
      << tileText(report) << "\n\n";
  if (!report.lists.empty())
    out << std::right << std::setw(8) << "budget" << std::setw(9) << "queries" << std::setw(11) << "rule us"
        << std::setw(10) << "tuned us" << std::setw(9) << "gain" << "  items of\n";
  std::vector<sparse::TunedLists> sorted = report.lists;
  std::sort(sorted.begin(), sorted.end(), [](const sparse::TunedLists &a, const sparse::TunedLists &b) {
    return std::pair(a.lists.budget, a.lists.queries) < std::pair(b.lists.budget, b.lists.queries);
  });
  for (const sparse::TunedLists &one : sorted)
    out << std::right << std::setw(8) << one.lists.budget << std::setw(9) << one.lists.queries
        << std::setw(11) << rounded(one.untunedUs, 2) << std::setw(10) << rounded(one.tunedUs, 2)
        << std::setw(8) << rounded(one.gain(), 3) << "x  "
        << withSeparators(one.itemTokens > 0 ? one.itemTokens : one.cutUntuned) << " tokens"
        << (one.itemTokens > 0 ? ", the rule has " + withSeparators(one.cutUntuned) : ", by the rule")
        << '\n';
  out << (report.lists.empty() ? "" : "\n") << endText(report.ended) << "; "
      << counted(std::ssize(report.lists), "kind of lists", "kinds of lists") << " tuned";
  if (!report.known.empty())
    out << ", " << report.known.size() << " known before";
  out << ", " << rounded(report.seconds, 1) << " s\n";
  if (!report.path.empty())
    out << "kept in " << report.path << '\n';
}

} // namespace

support::Result<sparse::TuneReport> tuneSparse(Context &context, const program::Program &program,
                                               const std::vector<exec::ParamValue> &params,
                                               const sparse::TuneOptions &options) {
  const CatchInterrupts interrupts;
  support::Result<sparse::TuneReport> report = support::Error{};
  {
    Progress progress(context, "tuning sparse layers");
    sparse::Listener listener;
    listener.progress = [&](const sparse::Status &status) { progress.say(status.text); };
    listener.isCancelled = [] { return interruptedBy != 0; };
    report = sparse::tuneApart(program, params, options, listener);
  }
  if (!report)
    return report;
  print(*report, context.out);
  for (const std::string &note : report->notes)
    context.err << "warning: " << note << '\n';
  return report;
}

int exitCodeOf(const sparse::TuneReport &report) {
  return report.ended == measure::Ended::Interrupted ? kExitSignal + interruptedBy : kExitOk;
}

void keepInJournal(Context &context, const sparse::TuneReport &report, const std::string &journal) {
  if (const auto kept = session::appendToJournal(journal, sparse::sparseEvent(report)); !kept)
    context.err << "warning: " << kept.error().message << '\n';
}

int writeSparsePage(Context &context, const program::Program &program, const sparse::TuneReport &report,
                    const std::string &path) {
  const nlohmann::json head = {
      {"event", "session"},
      {"variant", program.variant().name},
      {"signature", report.signature.text()},
      {"device", toJson(report.device)},
      {"deftc", DEFT_VERSION},
      {"kernel_hash", config_cache::sparseKernelHash()},
      {"backend", "cuda"},
      {"command", support::isUtf8(context.command) ? context.command : std::string()}};
  const nlohmann::json end = {
      {"event", "end"}, {"reason", toString(report.ended)}, {"seconds", report.seconds}};
  auto session = report::sessionOf({head, sparse::sparseEvent(report), end}, "");
  return session ? writeTunePage(context, {std::move(*session)}, path)
                 : reportError(context, session.error());
}

} // namespace deft::cli
