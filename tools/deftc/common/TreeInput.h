#pragma once

#include "runtime/tree/KvTree.h"
#include "tools/deftc/common/Context.h"
#include "tuner/workload/Workload.h"

#include <cstdint>
#include <string>
#include <vector>

namespace deft::cli {

/// One tree: from a file, or from one step of a workload.
struct TreeOptions {
  std::string tree, workload, workloads;
  std::uint64_t seed = 0;
  int step = 1;

  bool isGiven() const { return !tree.empty() || !workload.empty(); }
};

/// Adds --tree, --workload, --workloads, --step and --seed.
void addTreeOptions(CLI::App &command, TreeOptions &options);

/// Whether a file among specs contains a tree; its name may be anything. Always false for a pipe, which can
/// be read only once; pass it with --tree instead.
bool isTreeFile(const std::string &path);

/// The workload at its step. Like openTree(), it shows the progress of long work on `context.err`.
support::Result<workload::Workload> openWorkload(Context &context, const TreeOptions &options);

struct NamedTree {
  std::string name; ///< for people
  tree::KvTree tree;
  std::vector<std::string> nodeNames; ///< as in the tree's file, or empty
};

/// If nothing was given, the error lists the options.
support::Result<NamedTree> openTree(Context &context, const TreeOptions &options);

} // namespace deft::cli
