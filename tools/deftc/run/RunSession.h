#pragma once

#include "tools/deftc/common/Context.h"
#include "tools/deftc/run/RunReport.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// What a user asks of `deftc run`.
struct RunOptions {
  std::string input, variant;
  std::string tree, workload, recordsFolder; ///< a tree file or a workload
  std::string inputs;                        ///< a folder with the tree and all inputs; else these are random
  std::string backend, pages = "in-order", json, dump;
  std::string config; ///< a file
  bool untuned = false;
  std::optional<spec::Partition> partition;
  std::vector<std::string> params;
  std::uint64_t seed = 0;
  int steps = 1;
  int chunk = -1;    ///< -1: the config's
  int repeat = 0;    ///< 0: the backend's default
  int threads = 0;   ///< 0: all
  std::string check; ///< empty: nothing is; "true": a sample, where there is much; "all"

  bool isChecked() const { return !check.empty(); }
  bool isAllChecked() const { return check == "all"; }
};

/// Runs all of it: opens, plans, runs, checks and dumps.
support::Result<RunReport> runSession(Context &context, const RunOptions &options);

} // namespace deft::cli
