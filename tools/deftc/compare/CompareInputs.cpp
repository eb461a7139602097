#include "tools/deftc/compare/CompareInputs.h"

#include "runtime/exec/Params.h"
#include "tools/deftc/common/ProgramInput.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// A tree by what is in the file: its name may be any.
bool isTreeFile(const std::string &path) {
  constexpr std::size_t kMost = 4096;
  std::ifstream file(path, std::ios::binary);
  std::string head(kMost, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head.find("\"deftc-tree\"") != std::string::npos;
}

bool hasParamOf(const spec::Variant &variant, const std::string &assignment) {
  return std::any_of(variant.params.begin(), variant.params.end(),
                     [&](const spec::Param &param) { return assignment.starts_with(param.name + "="); });
}

/// Two packages of one spec are told apart by their files, which `files` has in the order of the programs.
void nameApart(std::vector<std::unique_ptr<NamedProgram>> &programs, const std::vector<std::string> &files) {
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::string &name = programs[i]->program.variant().name;
    const auto ofThatName = std::count_if(programs.begin(), programs.end(), [&](const auto &other) {
      return other->program.variant().name == name;
    });
    if (ofThatName > 1)
      programs[i]->name = name + " of " + std::filesystem::path(files[i]).filename().string();
  }
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
    return Error{ErrorCode::Usage, "no spec and no package is given", "name one, as llama3_8b"};
  nameApart(inputs.programs, programFiles);
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
  if (auto checked = checkParams(inputs.programs, options.params); !checked)
    return checked.error();
  return inputs;
}

} // namespace deft::cli
