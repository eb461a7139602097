#pragma once

#include "tools/deftc/bench/BenchMachine.h"
#include "tools/deftc/bench/BenchVariants.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace deft::cli {

struct SuiteRuns {
  std::string name;
  std::vector<RowRun> rows;
};

/// Everything that one call of `bench` measured.
struct BenchReport {
  std::vector<SuiteRuns> suites;
  std::vector<VariantRun> variants;
  bool isComplete = false; ///< all that was asked for is in it
};

/// What a report says first: by which program, when and with which options. Device and rows come to it.
nlohmann::json headOfReport(const KernelBenchFlags &flags);

nlohmann::json toJson(const BenchReport &report, const KernelBenchFlags &flags, const BenchMachine &machine);

} // namespace deft::cli
