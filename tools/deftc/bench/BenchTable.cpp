#include "tools/deftc/bench/BenchTable.h"

#include "compiler/config/ConfigJson.h"
#include "tools/deftc/common/Numbers.h"

#include <iomanip>
#include <sstream>

namespace deft::cli {

using bench::Worst;

namespace {

std::string ratio(double value) { return value > 0 ? rounded(value, 2) : "-"; }

std::string overText(const std::string &what, const Worst &worst, const std::string &limitText) {
  if (worst.rows == 0)
    return {};
  std::string text = "  " + what + ": " + ratio(worst.mean) + " in the geometric mean of " +
                     counted(worst.rows, "row", "rows") + ", at most " + ratio(worst.worst) + " (" +
                     worst.worstName + ")";
  if (!limitText.empty()) {
    text += "; " + counted(static_cast<long long>(worst.beyond.size()), "row", "rows") + " " + limitText;
    for (std::size_t i = 0; i < worst.beyond.size(); ++i)
      text += (i == 0 ? ": " : ", ") + worst.beyond[i];
  }
  return text + "\n";
}

} // namespace

std::string ceilingsText(const bench::Yardstick &yardstick) {
  std::ostringstream text;
  if (!yardstick.measured())
    return "ceilings: as recorded\n";
  const bench::MeasuredCeilings &ceilings = *yardstick.measured();
  text << "ceilings: empty launch " << rounded(ceilings.launchUs, 1) << " us; matrix units "
       << rounded(ceilings.units.f16, 0) << " TFLOP/s f16, " << rounded(ceilings.units.bf16, 0)
       << " bf16; cold reads, us, by loads / by bulk copies\n  MiB  ";
  for (const bench::ReadTime &read : ceilings.reads)
    text << std::setw(7) << rounded(read.mib, 0);
  text << "\n  loads";
  for (const bench::ReadTime &read : ceilings.reads)
    text << std::setw(7) << rounded(read.loadsUs, 1);
  text << "\n  bulk ";
  for (const bench::ReadTime &read : ceilings.reads)
    text << std::setw(7) << (read.bulkUs > 0 ? rounded(read.bulkUs, 1) : "-");
  text << "\nmatrix products of the floor: " << rounded(yardstick.productTFlops(spec::DType::F16), 0)
       << " TFLOP/s f16, " << rounded(yardstick.productTFlops(spec::DType::BF16), 0)
       << " bf16: the units' rate times the fraction that a library's product reached on an "
       << bench::recordedCard().model;
  if (yardstick.recorded())
    text << "\nrecorded times are of this card, scaled to this machine: reads by "
         << rounded(yardstick.readScale(), 3) << ", products by "
         << rounded(yardstick.productScale(spec::DType::F16), 3) << "; raw: unscaled";
  else
    text << "\nrecorded times, of peers and floors, are of an " << bench::recordedCard().model
         << ", so nothing here is compared with them";
  text << "\n";
  return text.str();
}

std::string rowHead(const KernelBenchFlags &flags) {
  std::ostringstream head;
  head << std::left << std::setw(16) << "tree" << std::right << std::setw(8) << "cold us" << std::setw(8)
       << "floor" << std::setw(8) << "/floor" << std::setw(8) << "roof" << std::setw(9) << "peer"
       << std::setw(8) << "faster" << std::setw(7) << "raw";
  if (!flags.quick)
    head << std::setw(8) << "warm us" << std::setw(8) << "scatter" << std::setw(7) << "pg16";
  if (flags.explore)
    head << std::setw(8) << "best" << std::setw(7) << "/best" << std::setw(6) << "tile" << std::setw(6)
         << "chunk";
  head << std::setw(7) << "items" << std::setw(9) << "partials" << std::setw(9) << "plan us"
       << "  partition\n";
  return head.str();
}

std::string rowLine(const RowRun &run, const KernelBenchFlags &flags) {
  const bench::Measured &chosen = run.contiguous.chosen;
  const bench::RowScore &score = run.score;
  const auto over = [&](double value, double reference) {
    return ratio(value > 0 && reference > 0 ? value / reference : 0);
  };
  std::ostringstream line;
  line << std::left << std::setw(16) << score.name << std::right << std::setw(8) << rounded(score.coldUs, 1)
       << std::setw(8) << rounded(score.floorUs, 1) << std::setw(8) << over(score.coldUs, score.floorUs)
       << std::setw(8) << rounded(run.rooflineUs, 1) << std::setw(9)
       << (score.peerUs > 0 ? rounded(score.peerUs, 1) : "-") << std::setw(8)
       << over(score.peerUs, score.coldUs) << std::setw(7) << over(score.rawPeerUs, score.coldUs);
  if (!flags.quick)
    line << std::setw(8) << rounded(score.warmUs, 1) << std::setw(8) << over(score.scatteredUs, score.coldUs)
         << std::setw(7) << over(score.pages16Us, score.coldUs);
  if (run.contiguous.best) {
    const bench::Measured &best = *run.contiguous.best;
    line << std::setw(8) << rounded(best.medianUs, 1) << std::setw(7) << over(score.coldUs, best.medianUs)
         << std::setw(6) << best.config.phases.front().tileQ << std::setw(6) << best.chunkTokens;
  }
  line << std::setw(7) << chosen.items << std::setw(9) << chosen.partialSlots << std::setw(9)
       << rounded(chosen.planUs, 1) << "  " << config::partitionName(chosen.partition);
  if (run.ruling.rule() != config_cache::Rule::Heuristic)
    line << ", " << config_cache::ruleName(run.ruling.rule());
  if (const std::string wrong = run.wrong(); !wrong.empty())
    line << "  WRONG: " << wrong;
  return line.str() + "\n";
}

std::string summaryText(const bench::Summary &summary) {
  std::string text;
  if (summary.overPeer.rows > 0)
    text += "  " + ratio(1 / summary.overPeer.mean) +
            " times faster than the best recorded peer in the geometric mean of " +
            counted(summary.overPeer.rows, "row", "rows") + ", scaled to this machine (unscaled " +
            ratio(1 / summary.overRawPeer.mean) + ", slower on " +
            std::to_string(summary.overRawPeer.beyond.size()) + "); slower on " +
            std::to_string(summary.overPeer.beyond.size());
  for (std::size_t i = 0; i < summary.overPeer.beyond.size(); ++i)
    text += (i == 0 ? ": " : ", ") + summary.overPeer.beyond[i];
  if (!summary.overPeer.beyond.empty())
    text += "; largest loss " + rounded(100 * (summary.overPeer.worst - 1), 0) + " % (" +
            summary.overPeer.worstName + ")";
  text += text.empty() ? "" : "\n";
  text += overText("time over the floor", summary.overFloor, "beyond 1.7");
  text += overText("over the recorded floor", summary.overRecordedFloor, "");
  text += overText("over the floor where it exceeds 75 us", summary.overLargeFloor, "beyond 1.25");
  text += overText("warm over cold L2", summary.warm, "");
  text += overText("scattered pages over contiguous", summary.scattered, "beyond the limit");
  text += overText("scattered pages of 16 over contiguous", summary.pages16, "beyond 1.1");
  text += overText("untuned over the best of the exploration", summary.overBest, "beyond 1.15");
  return text;
}

std::vector<bench::RowScore> scoresOf(std::span<const RowRun> runs) {
  std::vector<bench::RowScore> scores;
  for (const RowRun &run : runs)
    scores.push_back(run.score);
  return scores;
}

} // namespace deft::cli
