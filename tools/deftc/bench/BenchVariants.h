#pragma once

#include "tools/deftc/bench/BenchMachine.h"

#include <string>
#include <vector>

namespace deft::cli {

/// What a mask, a score, a normalisation or a type costs on one tree.
struct VariantRun {
  std::string tree, variant;
  bool isBoundByFlops = false; ///< of the plain attention
  double plainUs = 0, us = 0;  ///< cold L2, medians of the rounds
  std::vector<double> ratios;  ///< of each round
  double limit = 0;            ///< most that us / plainUs should be
  bool isRight = false;        ///< the result, and the plain one

  double ratio() const { return us / plainUs; }
};

/// Rows bound by bytes may cost 10 % more, by flops 25 %; another type nothing but what measuring is unsure
/// by.
constexpr double kVariantBytesLimit = 1.10, kVariantFlopsLimit = 1.25, kTypeLimit = 1.03;

/// So often a tree runs with all attentions in turn; once where it is to be quick.
constexpr int kVariantRounds = 3;

/// Runs bench::variantRows() and prints a line each. Empty where no spec has the variants.
support::Result<std::vector<VariantRun>> benchVariants(Context &context, const KernelBenchFlags &flags,
                                                       BenchMachine &machine);

} // namespace deft::cli
