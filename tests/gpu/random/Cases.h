#pragma once

#include "tests/gpu/random/Backend.h"
#include "tests/gpu/random/CheckPool.h"

#include <cstdint>
#include <string>

namespace deft::gpu_test {

struct CaseOptions {
  std::uint64_t seed = 1;
  int trees = 10;         ///< of each variant and config
  int invariantTrees = 2; ///< of each variant
  int mostQueries = 1024; ///< of a token tree
  int onlyTree = -1;      ///< -1: all
};

/// One variant under one config: what its cases need.
struct Subject {
  const spec::Variant &variant;
  config::Config config;
  int variantIndex = 0, configIndex = 0;
  Kernels &kernels;
};

/// Random trees, partitions, chunks, placements and histories of growth that plans followed, each run twice:
/// results go to the oracle, and a second run must give the same bits.
void runRandomCases(const Subject &subject, const CaseOptions &options, CheckPool &pool);

/// Plans that are invariant: a query's bits must stay when other requests leave.
void runInvariantCases(const Subject &subject, const CaseOptions &options, CheckPool &pool);

/// A cache of more than 2^31 elements, the tree's tokens at its end.
void runLargePoolCase(const Subject &subject, const CaseOptions &options, CheckPool &pool);

} // namespace deft::gpu_test
