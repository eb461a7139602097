#include "tools/deftc/tune/TuneSummary.h"

#include "tools/deftc/common/Numbers.h"

#include <iomanip>
#include <ostream>

namespace deft::cli {

const char *endText(measure::Ended ended) {
  switch (ended) {
  case measure::Ended::Complete:
    return "complete";
  case measure::Ended::Budget:
    return "stopped by its budget; the same command continues it";
  case measure::Ended::Interrupted:
    return "interrupted; the same command continues it";
  }
  return "";
}

void printTuneSummary(const session::TuneReport &report, std::ostream &out) {
  out << report.device.text() << ", " << report.signature.text() << "\n\n";
  out << std::left << std::setw(24) << "class" << std::right << std::setw(7) << "trees" << std::setw(11)
      << "untuned us" << std::setw(10) << "tuned us" << std::setw(8) << "gain" << std::setw(10) << "held out"
      << "  config\n";
  for (const session::ClassReport &one : report.classes) {
    out << std::left << std::setw(24) << one.treeClass.text() << std::right << std::setw(7) << one.trees;
    if (!one.isDone) {
      out << "  not done" << (one.note.empty() ? "" : ": " + one.note) << '\n';
      continue;
    }
    const config_cache::Measurement &measured = one.entry.measurement;
    out << std::setw(11) << rounded(measured.untunedUs, 1) << std::setw(10) << rounded(measured.tunedUs, 1)
        << std::setw(7) << rounded(one.gain, 2) << "x" << std::setw(10)
        << (one.heldOutGain ? rounded(*one.heldOutGain, 2) + "x" : "-") << "  "
        << report::configText(one.entry.config);
    if (!one.note.empty())
      out << " (" << one.note << ")";
    if (!one.entry.isComplete)
      out << " (its search was cut short by the budget)";
    out << '\n';
  }
  out << '\n'
      << endText(report.ended) << "; " << counted(report.made, "measurement", "measurements") << " made, "
      << withSeparators(report.reused) << " reused, " << rounded(report.seconds, 1) << " s";
  if (report.restarts > 0)
    out << ", " << counted(report.restarts, "restart", "restarts") << " after a fault";
  out << '\n';
  if (!report.configPath.empty())
    out << "configs: " << report.configPath << " (" << report.written.added << " added, "
        << report.written.replaced << " replaced)\n";
  if (!report.written.setAside.empty())
    out << "the broken file that was there is kept in " << report.written.setAside << '\n';
  if (report.shard)
    out << "shard " << report.shard->text() << ": " << report.classes.size() << " of "
        << counted(report.sessionClasses, "class", "classes")
        << "; deftc cache merge joins the journals of all shards\n";
  out << "journal: " << report.journal << '\n';
}

} // namespace deft::cli
