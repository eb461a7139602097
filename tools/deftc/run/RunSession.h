#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/program/Program.h"
#include "runtime/tree/CachePlacement.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/run/RunOptions.h"
#include "tools/deftc/run/RunReport.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// A step that a file describes as it was, in place of a tree that is to be laid out.
struct GivenStep {
  std::string name; ///< for people
  tree::KvTree tree;
  tree::CachePlacement placement; ///< in which the tree has its places
  std::vector<exec::ParamValue> params;
  std::optional<config::Config> config; ///< comes before all others, where it can be used
};

/// As runSession(), of this one step; the options say nothing of trees then.
support::Result<RunReport> runGiven(Context &context, const RunOptions &options,
                                    const program::Program &program, GivenStep step);

/// Runs all of it: opens, plans, runs, checks and dumps.
support::Result<RunReport> runSession(Context &context, const RunOptions &options);

} // namespace deft::cli
