#pragma once

#include "runtime/program/Program.h"
#include "tools/deftc/common/TreeInput.h"
#include "tools/deftc/compare/CompareOptions.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::cli {

struct NamedProgram {
  std::string name; ///< of its attention, with the file where two have one name
  program::Program program;
};

/// The programs and the trees that are named side by side on the command line.
struct CompareInputs {
  std::vector<std::unique_ptr<NamedProgram>> programs; ///< at least one; addresses stay valid
  std::vector<NamedTree> trees;                        ///< at least one
};

/// A parameter of --param that no program has is an error.
support::Result<CompareInputs> openCompareInputs(Context &context, const CompareOptions &options);

/// Those of the assignments of --param whose parameters the variant has.
std::vector<std::string> paramsOf(const spec::Variant &variant, const std::vector<std::string> &assignments);

} // namespace deft::cli
