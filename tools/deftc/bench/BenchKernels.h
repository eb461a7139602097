#pragma once

#include "tools/deftc/bench/BenchMachine.h"

#include <span>
#include <string>
#include <vector>

namespace deft::cli {

/// Rows that are measured and summed up together.
struct BenchSuite {
  std::string name;
  std::span<const bench::KernelRow> rows;
};

void addKernelFlags(CLI::App *command, KernelBenchFlags &flags);

/// Runs the suites on the GPU and prints a line a row as they come; the exit code, 1 when a result is wrong.
/// `withVariants`: afterwards what masks and scores cost, too.
int benchKernels(Context &context, const KernelBenchFlags &flags, const std::vector<BenchSuite> &suites,
                 bool withVariants);

} // namespace deft::cli
