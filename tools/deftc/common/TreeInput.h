#pragma once

#include "runtime/tree/KvTree.h"
#include "tools/deftc/common/Context.h"
#include "tuner/workload/Workload.h"

#include <cstdint>
#include <string>
#include <vector>

namespace deft::cli {

/// One tree, out of a file or of a step of a workload.
struct TreeOptions {
  std::string tree, workload, workloads;
  std::uint64_t seed = 0;
  int step = 1;

  bool isGiven() const { return !tree.empty() || !workload.empty(); }
};

/// Adds --tree, --workload, --workloads, --step and --seed.
void addTreeOptions(CLI::App &command, TreeOptions &options);

/// Whether a file that is given beside specs is a tree, by what is in it: its name may be any. A pipe can be
/// read but once, so it is no tree here; with --tree it may be one.
bool isTreeFile(const std::string &path);

/// At its step. What takes long is said on `context.err`, as openTree() does.
support::Result<workload::Workload> openWorkload(Context &context, const TreeOptions &options);

struct NamedTree {
  std::string name; ///< for people
  tree::KvTree tree;
  std::vector<std::string> nodeNames; ///< as the tree's file has them, or empty
};

/// An error that says what to give where nothing was given.
support::Result<NamedTree> openTree(Context &context, const TreeOptions &options);

} // namespace deft::cli
