#include "tools/deftc/tune/TuneCalibrate.h"

#include "compiler/support/Numbers.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/tune/CatchInterrupts.h"

#include <iomanip>
#include <ostream>

namespace deft::cli {
namespace {

using calibrate::Calibration;
using calibrate::PriceQuality;

std::string percent(double share) { return rounded(100 * share, 1) + " %"; }

void printCalibration(const Calibration &made, std::ostream &out) {
  out << made.device.text() << ": " << counted(std::ssize(made.probes), "probe", "probes") << " in "
      << rounded(made.seconds, 0) << " s, beginning with the prices of " << made.from.name << "\n\n"
      << std::left << std::setw(20) << "price" << std::right << std::setw(10) << "before" << std::setw(10)
      << "after" << '\n';
  for (const calibrate::FittedPrice &price : made.fit.prices) {
    const double after = made.fit.after.*price.name.member;
    out << std::left << std::setw(20) << price.name.key << std::right << std::setw(10)
        << support::significant(after / price.factor, 3) << std::setw(10) << support::significant(after, 3)
        << (price.isDecided ? "" : "  not determined by these probes, unchanged") << '\n';
  }
  const PriceQuality &before = made.before, &after = made.after;
  out << "\nprices are off by " << percent(before.medianError) << " before, " << percent(after.medianError)
      << " after in the median of the probes; " << percent(before.worstError) << " and "
      << percent(after.worstError) << " at worst\n"
      << "of the configs of " << counted(after.trees, "tree", "trees") << " the cheapest by the prices takes "
      << percent(before.meanRegret) << " longer than the fastest before, " << percent(after.meanRegret)
      << " after, on average; " << percent(before.worstRegret) << " and " << percent(after.worstRegret)
      << " at worst\n"
      << "kept in " << made.path << '\n';
}

} // namespace

int calibrateMachine(Context &context, const calibrate::CalibrateInput &input,
                     const calibrate::CalibrateOptions &options) {
  const CatchInterrupts interrupts;
  support::Result<Calibration> made = support::Error{};
  {
    Progress progress(context, "calibrating");
    session::Listener listener;
    listener.progress = [&](const session::Status &status) {
      progress.say(std::to_string(status.measured) + " of " + std::to_string(status.measured + status.left) +
                   " runs of probes, at most " + rounded(status.secondsLeft, 0) + " s left");
    };
    listener.note = [&](const std::string &line) { progress.note(line); };
    listener.isCancelled = [] { return interruptedBy != 0; };
    made = calibrate::calibrate(input, options, listener);
  }
  if (interruptedBy != 0)
    return kExitSignal + interruptedBy;
  if (!made)
    return reportError(context, made.error());
  for (const std::string &note : made->notes)
    context.err << "warning: " << note << '\n';
  printCalibration(*made, context.out);
  return kExitOk;
}

} // namespace deft::cli
