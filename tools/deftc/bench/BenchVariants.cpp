#include "tools/deftc/bench/BenchVariants.h"

#include "tools/deftc/common/Numbers.h"
#include "tuner/bench/GeometricMean.h"
#include "tuner/measure/Samples.h"

#include <iomanip>
#include <map>
#include <ostream>
#include <span>

namespace deft::cli {

using bench::KernelRow;
using support::Result;

namespace {

/// What one attention took on a tree, round by round.
struct Rounds {
  std::vector<double> us;
  bool isRight = true;
  double flops = 0, cacheBytes = 0;

  double medianUs() const { return measure::median(us); }
};

/// All of them in turn, several times: what the machine does meanwhile is then the same for all. Inputs are
/// made and results are checked the first time.
Result<std::vector<Rounds>> measureInTurn(BenchMachine &machine, const KernelRow &row,
                                          std::span<const std::string> attentions, int rounds, int repeats) {
  std::vector<Rounds> all;
  std::vector<bench::KernelBench *> benches;
  for (const std::string &attention : attentions) {
    const auto run = machine.measurePlain(row, attention);
    if (!run)
      return run.error();
    const bench::KernelBenchResult &result = run->result;
    all.push_back({{result.chosen.medianUs}, result.check.passed(), result.flops, result.cacheBytes});
    benches.push_back(run->bench);
  }
  for (int round = 1; round < rounds; ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto timing = benches[i]->timeAgain(repeats);
      if (!timing)
        return timing.error();
      all[i].us.push_back(timing->medianUs);
    }
  return all;
}

VariantRun compared(const Rounds &plain, const Rounds &own) {
  VariantRun run;
  run.plainUs = plain.medianUs();
  run.us = own.medianUs();
  for (std::size_t round = 0; round < own.us.size(); ++round)
    run.ratios.push_back(own.us[round] / plain.us[round]);
  run.isRight = plain.isRight && own.isRight;
  return run;
}

} // namespace

Result<std::vector<VariantRun>> benchVariants(Context &context, const KernelBenchFlags &flags,
                                              BenchMachine &machine) {
  std::vector<VariantRun> runs;
  std::vector<std::string_view> suffixes;
  for (const std::string_view suffix : bench::variantSuffixes())
    if (machine.has(std::string(bench::variantRows().front().attention) + "_" + std::string(suffix)))
      suffixes.push_back(suffix);
  std::ostream &out = context.out;
  out << "\nvariants on " << machine.device().facts().name << ": time over the plain attention's\n";
  if (suffixes.empty()) {
    out << "left out, no spec has them\n";
    return runs;
  }
  out << std::left << std::setw(16) << "tree" << std::right << std::setw(8) << "bound" << std::setw(10)
      << "plain us";
  for (const std::string_view suffix : suffixes)
    out << std::setw(9) << suffix;
  out << "\n";

  std::map<std::string_view, bench::GeometricMean> means;
  for (const KernelRow &row : bench::variantRows()) {
    if (!flags.only.empty() && row.name.find(flags.only) == std::string_view::npos)
      continue;
    std::vector<std::string> attentions{std::string(row.attention)};
    for (const std::string_view suffix : suffixes)
      attentions.push_back(attentions.front() + "_" + std::string(suffix));
    const auto measured =
        measureInTurn(machine, row, attentions, flags.quick ? 1 : kVariantRounds, flags.repeats);
    if (!measured)
      return measured.error();
    const Rounds &plain = measured->front();
    const bench::Yardstick &yardstick = machine.yardstick();
    const bool isBoundByFlops =
        yardstick.productUs(plain.flops, spec::DType::F16) > yardstick.readUs(plain.cacheBytes, 0);
    out << std::left << std::setw(16) << row.name << std::right << std::setw(8)
        << (isBoundByFlops ? "flops" : "bytes") << std::setw(10) << rounded(plain.medianUs(), 1);
    for (std::size_t i = 0; i < suffixes.size(); ++i) {
      VariantRun run = compared(plain, (*measured)[1 + i]);
      run.tree = row.name;
      run.variant = suffixes[i];
      run.isBoundByFlops = isBoundByFlops;
      run.limit = suffixes[i] == "bf16" ? kTypeLimit
                  : isBoundByFlops      ? kVariantFlopsLimit
                                        : kVariantBytesLimit;
      means[suffixes[i]].add(run.ratio());
      out << ' ' << std::setw(8)
          << rounded(run.ratio(), 2) + (run.isRight ? run.ratio() > run.limit ? "!" : "" : " WRONG");
      runs.push_back(std::move(run));
    }
    out << "\n" << std::flush;
  }
  out << std::left << std::setw(34) << "geometric mean" << std::right;
  for (const std::string_view suffix : suffixes)
    out << std::setw(9) << rounded(means[suffix].value(), 2);
  out << "\n  ! above its limit: 1.10 on memory-bound rows, 1.25 on compute-bound rows, 1.03 for bf16\n";
  return runs;
}

} // namespace deft::cli
