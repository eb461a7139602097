#pragma once

#include "tuner/workload/Generator.h"
#include "tuner/workload/Workload.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft::workload {

/// A generator that can be made by name. `make` reads each parameter once; afterwards Parameters::error() has
/// the first fault.
struct Recipe {
  Description description;
  std::function<std::unique_ptr<Generator>(Parameters &, std::uint64_t seed)> make;
};

/// A recipe's `make`, of a generator that takes what it takes.
template <typename T> std::unique_ptr<Generator> makeGenerator(Parameters &parameters, std::uint64_t seed) {
  return std::make_unique<T>(parameters, seed);
}

/// Trees whose shape is known before the first step: prompts shared on one or more levels.
std::vector<Recipe> promptRecipes();
/// Trees that a search shapes while it decodes.
std::vector<Recipe> searchRecipes();
/// Speculative decoding.
std::vector<Recipe> tokenTreeRecipes();
/// Batches whose requests have any number of new tokens.
std::vector<Recipe> raggedRecipes();
std::vector<Recipe> randomForestRecipes();

/// All of the above.
const std::vector<Recipe> &generatedRecipes();

/// One recorded workload, read from its file: strict; errors name the file and the place in it.
support::Result<Recipe> readRecord(const std::string &path);

/// Whether the first bytes of a file identify it as a record; it does not check the rest.
bool isRecordFile(const std::string &path);

/// Several workloads next to each other in one forest.
support::Result<std::unique_ptr<Generator>> makeMixture(const GivenParameters &given, std::uint64_t seed);
Description mixtureDescription();

/// Makes the generator of a recipe; fails on parameters that it does not have or accept.
support::Result<std::unique_ptr<Generator>> makeFrom(const Recipe &recipe, const GivenParameters &given,
                                                     std::uint64_t seed);

constexpr int kMostSteps = 1 << 24;
constexpr int kMostTokens = tree::KvTree::kMaxTokens;
constexpr int kMostBranches = 1 << 20;

} // namespace deft::workload
