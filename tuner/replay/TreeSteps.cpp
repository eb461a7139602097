#include "tuner/replay/TreeSteps.h"

#include "runtime/tree/TreeFile.h"

#include <utility>

namespace deft::replay {

using support::Result;

TreeSteps TreeSteps::ofTree(std::string name, tree::KvTree tree) {
  TreeSteps steps;
  steps.name_ = std::move(name);
  steps.file_ = std::move(tree);
  return steps;
}

Result<TreeSteps> TreeSteps::ofFile(const std::string &path) {
  auto tree = tree::readTreeFile(path);
  if (!tree)
    return tree.error();
  return ofTree(path, std::move(*tree));
}

Result<TreeSteps> TreeSteps::ofWorkload(const std::string &name, std::uint64_t seed,
                                        const std::string &recordsFolder) {
  auto workload = workload::make(name, seed, recordsFolder);
  if (!workload)
    return workload.error();
  TreeSteps steps;
  steps.name_ = workload->name();
  steps.workload_.emplace(std::move(*workload));
  return steps;
}

Result<bool> TreeSteps::next() { return workload_ ? workload_->next() : Result<bool>(false); }

Result<void> TreeSteps::seek(int step) { return workload_ ? workload_->seek(step) : Result<void>(); }

const std::vector<tree::TreeEdit> &TreeSteps::edits() const {
  static const std::vector<tree::TreeEdit> none;
  return workload_ ? workload_->edits() : none;
}

} // namespace deft::replay
