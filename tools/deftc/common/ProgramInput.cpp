#include "tools/deftc/common/ProgramInput.h"

#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/SpecInput.h"

#include <CLI/CLI.hpp>

namespace deft::cli {

void addProgramOptions(CLI::App &command, std::string &path, std::string &variantName) {
  command.add_option("SPEC", path, "A spec, the name of a shipped one, or a package; SPEC#NAME chooses")
      ->type_name(kSpecOrFile)
      ->required();
  command.add_option("--variant", variantName, "The attention to use if the file defines several");
}

support::Result<program::Program> openProgram(Context &context, std::string path, std::string variantName) {
  if (auto split = splitName(path, variantName); !split)
    return split.error();
  if (program::Program::isPackage(path)) {
    if (auto read = context.files.reads(path); !read)
      return read.error();
    return program::Program::fromPackage(path, variantName, kHowToChoose);
  }
  auto spec = loadSpec(context, path);
  if (!spec)
    return spec.error();
  return program::Program::fromSpec(*spec, variantName, kHowToChoose);
}

support::Result<void> readsParams(Context &context, const std::vector<std::string> &assignments) {
  for (const std::string &assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || !assignment.ends_with(".npy"))
      continue;
    if (auto read = context.files.reads(assignment.substr(equals + 1)); !read)
      return read;
  }
  return {};
}

support::Result<std::vector<exec::ParamValue>> openParams(Context &context, const spec::Variant &variant,
                                                          const std::vector<std::string> &assignments) {
  if (auto read = readsParams(context, assignments); !read)
    return read.error();
  return exec::bindParams(variant, assignments);
}

} // namespace deft::cli
