#pragma once

#include "tools/deftc/bench/BenchMachine.h"

#include <span>
#include <string>

/// The lines that `bench` prints.
namespace deft::cli {

std::string ceilingsText(const bench::Yardstick &yardstick);
std::string rowHead(const KernelBenchFlags &flags);
std::string rowLine(const RowRun &run, const KernelBenchFlags &flags);
/// Means, worst rows and losses of some rows.
std::string summaryText(const bench::Summary &summary);

/// The scores of runs, in their order.
std::vector<bench::RowScore> scoresOf(std::span<const RowRun> runs);

} // namespace deft::cli
