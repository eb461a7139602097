#pragma once

#include "runtime/tree/CachePlacement.h"
#include "tuner/workload/Workload.h"

#include <optional>
#include <string>

namespace deft::cli {

/// The tree of one step after the other: a file has one, a workload several.
class TreeSteps {
public:
  static support::Result<TreeSteps> ofFile(const std::string &path);
  static support::Result<TreeSteps> ofWorkload(const std::string &name, std::uint64_t seed,
                                               const std::string &recordsFolder);

  const std::string &name() const { return name_; } ///< for people
  const tree::KvTree &tree() const { return workload_ ? workload_->tree() : file_; }
  int step() const { return workload_ ? workload_->step() : 1; }
  int stepsLeft() const { return workload_ ? workload_->steps() - workload_->step() : 0; }

  /// Goes to the next step, and back to another.
  support::Result<bool> next();
  support::Result<void> seek(int step);

  const std::vector<tree::TreeEdit> &edits() const;

private:
  std::string name_;
  tree::KvTree file_;
  std::optional<workload::Workload> workload_;
};

/// A tree that follows a workload's and lies in a cache. Leaves have room behind them, so that they grow
/// where they are and a plan can be advanced; a leaf that has filled its room moves to a larger one.
class PlacedTree {
public:
  /// `begin`: the first place that it may take.
  explicit PlacedTree(tree::KvTree first, int begin = 0);

  /// Repeats what happened to the workload's tree.
  support::Result<void> follow(const std::vector<tree::TreeEdit> &edits, const tree::KvTree &workload);

  const tree::KvTree &tree() const { return tree_; }
  int tableTokens() const { return end_; } ///< of the page table, until now

private:
  struct Room {
    int begin = 0;
    int tokens = 0;
  };
  void noteEdit(const tree::TreeEdit &edit);
  void freeDead();
  support::Result<void> placeAll();
  Room take(int tokens);

  tree::KvTree tree_;
  std::vector<Room> rooms_; ///< of each node; none: 0 tokens
  std::vector<Room> free_;
  int end_ = 0;
};

} // namespace deft::cli
