#include "tools/deftc/compare/CompareInputs.h"

#include "runtime/exec/Params.h"
#include "tools/deftc/common/ProgramInput.h"

#include <algorithm>
#include <filesystem>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

bool hasParamOf(const spec::Variant &variant, const std::string &assignment) {
  return std::any_of(variant.params.begin(), variant.params.end(),
                     [&](const spec::Param &param) { return assignment.starts_with(param.name + "="); });
}

/// Which of them is alike another one; -1: none.
long long firstAlike(const std::vector<std::string> &names) {
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::count(names.begin(), names.end(), *name) > 1)
      return name - names.begin();
  return -1;
}

/// Rows are told apart by these names alone. Two that are alike have the name of their file with them, and
/// the whole path where that does not help: versions of a file are often kept in folders. `files` has what
/// was given for each, empty of one that is no file.
Result<std::vector<std::string>> namedApart(const std::vector<std::string> &names,
                                            const std::vector<std::string> &files,
                                            const std::string &between) {
  std::vector<std::string> apart = names;
  for (const bool isWhole : {false, true}) {
    const std::vector<std::string> before = apart;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!files[i].empty() && std::count(before.begin(), before.end(), before[i]) > 1)
        apart[i] = (between.empty() ? "" : names[i] + between) +
                   (isWhole ? files[i] : std::filesystem::path(files[i]).filename().string());
  }
  if (const long long alike = firstAlike(apart); alike >= 0) {
    const auto i = static_cast<std::size_t>(alike);
    return Error{ErrorCode::Usage, "`" + (files[i].empty() ? names[i] : files[i]) + "` is given twice",
                 "name each one once"};
  }
  return apart;
}

/// Two packages of one spec, or two versions of it.
Result<void> nameApart(std::vector<std::unique_ptr<NamedProgram>> &programs,
                       const std::vector<std::string> &files) {
  std::vector<std::string> names;
  for (const auto &one : programs)
    names.push_back(one->program.variant().name);
  auto apart = namedApart(names, files, " of ");
  if (!apart)
    return apart.error();
  for (std::size_t i = 0; i < programs.size(); ++i)
    programs[i]->name = std::move((*apart)[i]);
  return {};
}

Result<void> nameApart(std::vector<NamedTree> &trees, const std::vector<TreeOptions> &from) {
  std::vector<std::string> names, files;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    names.push_back(trees[i].name);
    files.push_back(from[i].tree);
  }
  auto apart = namedApart(names, files, "");
  if (!apart)
    return apart.error();
  for (std::size_t i = 0; i < trees.size(); ++i)
    trees[i].name = std::move((*apart)[i]);
  return {};
}

/// An assignment to a parameter that none of them has is a mistake, and the first program says so.
Result<void> checkParams(const std::vector<std::unique_ptr<NamedProgram>> &programs,
                         const std::vector<std::string> &assignments) {
  const bool areTaken =
      std::all_of(assignments.begin(), assignments.end(), [&](const std::string &assignment) {
        return std::any_of(programs.begin(), programs.end(),
                           [&](const auto &one) { return hasParamOf(one->program.variant(), assignment); });
      });
  if (areTaken)
    return {};
  const auto values = exec::bindKnownParams(programs.front()->program.variant(), assignments);
  return values ? Result<void>() : values.error();
}

} // namespace

std::vector<std::string> paramsOf(const spec::Variant &variant, const std::vector<std::string> &assignments) {
  std::vector<std::string> own;
  std::copy_if(assignments.begin(), assignments.end(), std::back_inserter(own),
               [&](const std::string &assignment) { return hasParamOf(variant, assignment); });
  return own;
}

Result<CompareInputs> openCompareInputs(Context &context, const CompareOptions &options) {
  CompareInputs inputs;
  std::vector<std::string> programFiles, treeFiles;
  for (const std::string &input : options.inputs) {
    if (isTreeFile(input)) {
      treeFiles.push_back(input);
      continue;
    }
    auto program = openProgram(context, input, "");
    if (!program)
      return program.error();
    inputs.programs.push_back(
        std::make_unique<NamedProgram>(NamedProgram{program->variant().name, std::move(*program)}));
    programFiles.push_back(input);
  }
  if (inputs.programs.empty())
    return Error{ErrorCode::Usage, "neither a spec nor a package is given", "name one, such as llama3_8b"};
  if (auto named = nameApart(inputs.programs, programFiles); !named)
    return named.error();
  std::vector<TreeOptions> trees;
  if (options.tree.isGiven() || treeFiles.empty())
    trees.push_back(options.tree);
  for (const std::string &file : treeFiles)
    trees.emplace_back().tree = file;
  for (const TreeOptions &one : trees) {
    auto tree = openTree(context, one);
    if (!tree)
      return tree.error();
    inputs.trees.push_back(std::move(*tree));
  }
  if (auto named = nameApart(inputs.trees, trees); !named)
    return named.error();
  if (auto checked = checkParams(inputs.programs, options.params); !checked)
    return checked.error();
  return inputs;
}

} // namespace deft::cli
