#pragma once

#include "tuner/workload/Generator.h"
#include "tuner/workload/Workload.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft::workload {

/// A generator that can be made by name. `make` reads each parameter once; what is wrong with them stands
/// in Parameters::error() afterwards.
struct Recipe {
  Description description;
  std::function<std::unique_ptr<Generator>(Parameters &, std::uint64_t seed)> make;
};

/// Trees whose shape is known before the first step: prompts shared on one or more levels.
std::vector<Recipe> promptRecipes();
/// Trees that a search shapes while it decodes.
std::vector<Recipe> searchRecipes();
/// Speculative decoding.
std::vector<Recipe> tokenTreeRecipes();
/// Batches in which requests have any number of new tokens.
std::vector<Recipe> raggedRecipes();
std::vector<Recipe> randomForestRecipes();

/// All of the above.
const std::vector<Recipe> &generatedRecipes();

/// One recorded workload, read from its file: strict, errors name the file and the place in it.
support::Result<Recipe> readRecord(const std::string &path);

/// Whether a file says that it is a record, by its first bytes; nothing else of it is checked.
bool isRecordFile(const std::string &path);

/// Several workloads side by side in one forest.
support::Result<std::unique_ptr<Generator>> makeMixture(const GivenParameters &given, std::uint64_t seed);
Description mixtureDescription();

/// Makes the generator of an recipe; fails on parameters that it does not have or take.
support::Result<std::unique_ptr<Generator>> makeFrom(const Recipe &recipe, const GivenParameters &given,
                                                     std::uint64_t seed);

constexpr int kMostSteps = 1 << 24;
constexpr int kMostTokens = tree::KvTree::kMaxTokens;
constexpr int kMostBranches = 1 << 20;

} // namespace deft::workload
