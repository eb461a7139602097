#include "compiler/support/NearestName.h"
#include "tuner/workload/Families.h"
#include "tuner/workload/GeneratorSource.h"
#include "tuner/workload/Recipes.h"
#include "tuner/workload/Workload.h"

#include <algorithm>
#include <filesystem>

/// The list of workloads, and making one by its name.
namespace deft::workload {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

namespace fs = std::filesystem;

std::vector<Recipe> collectGenerated() {
  std::vector<Recipe> all;
  for (auto recipes :
       {promptRecipes(), searchRecipes(), tokenTreeRecipes(), raggedRecipes(), randomForestRecipes()})
    all.insert(all.end(), recipes.begin(), recipes.end());
  return all;
}

/// The records in a folder, by name. Other files in it are ignored.
Result<std::vector<fs::path>> findRecords(const std::string &folder) {
  std::vector<fs::path> paths;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem))
    if (it->path().extension() == ".json" && isRecordFile(it->path().string()))
      paths.push_back(it->path());
  if (problem)
    return Error{ErrorCode::Environment, "cannot read folder `" + folder + "`: " + problem.message(), ""};
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The recipe of that name, or an error with the known names.
Result<Recipe> findRecipe(const std::string &name, const std::string &recordsFolder) {
  if (std::error_code problem; !recordsFolder.empty() && !fs::is_directory(recordsFolder, problem))
    return Error{ErrorCode::Environment, "cannot read folder `" + recordsFolder + "`: it is none", ""};
  std::vector<std::string> known{mixtureDescription().name};
  for (const Recipe &recipe : generatedRecipes()) {
    if (recipe.description.name == name)
      return recipe;
    known.push_back(recipe.description.name);
  }
  if (!recordsFolder.empty()) {
    const auto records = findRecords(recordsFolder);
    if (!records)
      return records.error();
    for (const fs::path &path : *records) {
      if (path.stem() == name)
        return readRecord(path.string());
      known.push_back(path.stem().string());
    }
  }
  const std::vector<WorkloadFamily> all = families();
  if (std::any_of(all.begin(), all.end(), [&](const WorkloadFamily &family) { return family.name == name; }))
    return Error{ErrorCode::Usage, "`" + name + "` is a family of workloads, which `deftc tune` takes",
                 "`deftc workloads` lists workloads"};
  std::string hint = support::didYouMean(name, known);
  if (hint.empty())
    hint = recordsFolder.empty() ? "`deftc workloads` lists them; recorded ones need --workloads DIR"
                                 : "`deftc workloads` lists them";
  return Error{ErrorCode::Usage, "no workload `" + name + "`", hint};
}

Parameter stepParameter() { return {"step", "1", "where to begin"}; }

} // namespace

const std::vector<Recipe> &generatedRecipes() {
  static const std::vector<Recipe> recipes = collectGenerated();
  return recipes;
}

Result<std::unique_ptr<Generator>> makeFrom(const Recipe &recipe, const GivenParameters &given,
                                            std::uint64_t seed) {
  auto parameters = Parameters::make(recipe.description.name, given, recipe.description.parameters);
  if (!parameters)
    return parameters.error();
  auto generator = recipe.make(*parameters, seed);
  if (!parameters->error())
    return generator;
  Error error = *parameters->error();
  error.message = "workload `" + recipe.description.name + "`: " + error.message;
  return error;
}

Result<std::vector<Description>> list(const std::string &recordsFolder) {
  std::vector<Description> all;
  all.reserve(generatedRecipes().size());
  for (const Recipe &recipe : generatedRecipes())
    all.push_back(recipe.description);
  all.push_back(mixtureDescription());
  if (!recordsFolder.empty()) {
    const auto records = findRecords(recordsFolder);
    if (!records)
      return records.error();
    for (const fs::path &path : *records) {
      const auto recipe = readRecord(path.string());
      if (!recipe)
        return recipe.error();
      all.push_back(recipe->description);
    }
  }
  for (Description &description : all)
    description.parameters.push_back(stepParameter());
  return all;
}

Result<Workload> make(std::string_view text, std::uint64_t seed, const std::string &recordsFolder) {
  const auto parsed = parseName(text);
  if (!parsed)
    return parsed.error();
  GivenParameters own, general;
  for (const auto &parameter : parsed->parameters)
    (parameter.first == stepParameter().name ? general : own).push_back(parameter);
  auto step = Parameters::make(parsed->name, general, {stepParameter()});
  if (!step)
    return step.error();
  const int firstStep = step->integer(stepParameter().name, 1, kMostSteps);
  if (step->error())
    return *step->error();

  Workload workload;
  workload.name_ = parsed->name;
  for (std::size_t i = 0; i < own.size(); ++i)
    workload.name_ += (i == 0 ? ":" : ",") + own[i].first + "=" + own[i].second;
  workload.seed_ = seed;
  workload.source_ = std::make_unique<GeneratorSource>();
  if (parsed->name == mixtureDescription().name) {
    workload.source_->make = [own, seed] { return makeMixture(own, seed); };
  } else {
    auto recipe = findRecipe(parsed->name, recordsFolder);
    if (!recipe)
      return recipe.error();
    workload.source_->make = [recipe = std::move(*recipe), own, seed] { return makeFrom(recipe, own, seed); };
  }
  if (auto started = workload.start(); !started)
    return started.error();
  if (auto moved = workload.seek(firstStep); !moved)
    return moved.error();
  return workload;
}

} // namespace deft::workload
