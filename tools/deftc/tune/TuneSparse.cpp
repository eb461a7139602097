#include "tools/deftc/tune/TuneSparse.h"

#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/common/SelectText.h"
#include "tools/deftc/tune/CatchInterrupts.h"

#include "compiler/kernels/SparsePhase.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <utility>

namespace deft::cli {
namespace {

const char *endText(sparse::Ended ended) {
  switch (ended) {
  case sparse::Ended::Complete:
    return "complete";
  case sparse::Ended::Budget:
    return "stopped by its budget; the same command goes on with it";
  case sparse::Ended::Interrupted:
    return "interrupted; the same command goes on with it";
  }
  return "";
}

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
  if (report.known > 0)
    out << ", " << report.known << " known before";
  out << ", " << rounded(report.seconds, 1) << " s\n";
  if (!report.path.empty())
    out << "kept in " << report.path << '\n';
}

} // namespace

int tuneSparse(Context &context, const program::Program &program, const std::vector<exec::ParamValue> &params,
               const sparse::TuneOptions &options) {
  const CatchInterrupts interrupts;
  support::Result<sparse::TuneReport> report = support::Error{};
  {
    Progress progress(context, "tuning sparse layers");
    sparse::Listener listener;
    listener.progress = [&](const std::string &text) { progress.say(text); };
    listener.isCancelled = [] { return interruptedBy != 0; };
    report = sparse::tune(program, params, options, listener);
  }
  if (!report)
    return reportError(context, report.error());
  print(*report, context.out);
  for (const std::string &note : report->notes)
    context.err << "warning: " << note << '\n';
  return report->ended == sparse::Ended::Interrupted ? kExitSignal + interruptedBy : kExitOk;
}

} // namespace deft::cli
