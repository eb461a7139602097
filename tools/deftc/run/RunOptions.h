#pragma once

#include "compiler/spec/Variant.h"

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
  int chunk = -1;               ///< -1: the config's
  int repeat = 0;               ///< 0: the backend's default
  int threads = 0;              ///< 0: all
  int budget = 0;               ///< 0: the first of the spec's
  bool mayChangeConfig = false; ///< a config that is given and cannot be used here gives way to another
  bool isInvariant = false;     ///< the plan's cuts do not depend on who else is in the tree
  std::string check;            ///< empty: nothing is; "true": a sample, where there is much; "all"

  bool isChecked() const { return !check.empty(); }
  bool isAllChecked() const { return check == "all"; }
};

} // namespace deft::cli
