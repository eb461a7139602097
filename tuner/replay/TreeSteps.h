#pragma once

#include "tuner/workload/Workload.h"

#include <optional>
#include <string>

namespace deft::replay {

/// The trees of successive steps: a file has one, a workload several.
class TreeSteps {
public:
  /// One step, of this tree.
  static TreeSteps ofTree(std::string name, tree::KvTree tree);
  static support::Result<TreeSteps> ofFile(const std::string &path);
  static support::Result<TreeSteps> ofWorkload(const std::string &name, std::uint64_t seed,
                                               const std::string &recordsFolder);

  const std::string &name() const { return name_; } ///< for people
  const tree::KvTree &tree() const { return workload_ ? workload_->tree() : file_; }
  int step() const { return workload_ ? workload_->step() : 1; }
  int stepsLeft() const { return workload_ ? workload_->steps() - workload_->step() : 0; }

  /// Goes to the next step, or to any step.
  support::Result<bool> next();
  support::Result<void> seek(int step);

  const std::vector<tree::TreeEdit> &edits() const;

private:
  std::string name_;
  tree::KvTree file_;
  std::optional<workload::Workload> workload_;
};

} // namespace deft::replay
