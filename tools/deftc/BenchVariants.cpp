#include "tools/deftc/BenchVariants.h"

#include "tools/deftc/Numbers.h"
#include "tuner/bench/GeometricMean.h"

#include <iomanip>
#include <map>
#include <ostream>

namespace deft::cli {

using bench::KernelRow;
using support::Result;

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
    const auto plain = machine.measurePlain(row, std::string(row.attention));
    if (!plain)
      return plain.error();
    const bench::Yardstick &yardstick = machine.yardstick();
    const bool isBoundByFlops =
        yardstick.productUs(plain->flops, spec::DType::F16) > yardstick.readUs(plain->cacheBytes, 0);
    out << std::left << std::setw(16) << row.name << std::right << std::setw(8)
        << (isBoundByFlops ? "flops" : "bytes") << std::setw(10) << rounded(plain->chosen.medianUs, 1);
    for (const std::string_view suffix : suffixes) {
      const auto result = machine.measurePlain(row, std::string(row.attention) + "_" + std::string(suffix));
      if (!result)
        return result.error();
      VariantRun run{std::string(row.name),
                     std::string(suffix),
                     isBoundByFlops,
                     plain->chosen.medianUs,
                     result->chosen.medianUs,
                     suffix == "bf16" ? kTypeLimit
                     : isBoundByFlops ? kVariantFlopsLimit
                                      : kVariantBytesLimit,
                     plain->check.passed() && result->check.passed()};
      means[suffix].add(run.ratio());
      out << std::setw(9)
          << rounded(run.ratio(), 2) + (run.isRight ? run.ratio() > run.limit ? "!" : "" : " WRONG")
          << std::flush;
      runs.push_back(std::move(run));
    }
    out << "\n";
  }
  out << std::left << std::setw(34) << "geometric mean" << std::right;
  for (const std::string_view suffix : suffixes)
    out << std::setw(9) << rounded(means[suffix].value(), 2);
  out << "\n  ! beyond its limit: 1.10 on rows bound by bytes, 1.25 by flops, 1.03 of bf16\n";
  return runs;
}

} // namespace deft::cli
