#pragma once

#include "tools/deftc/Context.h"
#include "tuner/bench/KernelRows.h"

#include <cstdint>
#include <span>
#include <string>

namespace deft::cli {

/// What the kernel suites can be told.
struct KernelBenchFlags {
  std::string spec, workloads, json, only, partition, pages = "in-order";
  int chunk = -1; ///< -1: the config's
  int tileQ = 0;  ///< 0: the config's
  int repeats = 41;
  bool warm = false, explore = false;
  std::uint64_t seed = 1;
};

void addKernelFlags(CLI::App *command, KernelBenchFlags &flags);

/// Runs the rows on the GPU and prints a line each as they come; the exit code, 1 when a result is wrong.
int benchKernels(Context &context, const KernelBenchFlags &flags, const std::string &suite,
                 std::span<const bench::KernelRow> rows);

} // namespace deft::cli
