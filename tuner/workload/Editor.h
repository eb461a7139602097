#pragma once

#include "runtime/tree/TreeEdit.h"

#include <optional>
#include <vector>

namespace deft::workload {

/// A generator's interface for writing a step: it changes the tree and records the edits. After the first
/// change that fails, it keeps the error and ignores later ones, so generators need not check.
class Editor {
public:
  Editor(tree::KvTree &tree, std::vector<tree::TreeEdit> &edits, std::vector<tree::Query> &queries)
      : tree_(tree), edits_(edits), queries_(queries) {}

  const tree::KvTree &tree() const { return tree_; }
  int tokensOf(int node) const { return hasFailed() ? 0 : tree_.nodes()[node].tokens; }

  int addNode(int parent, int tokens);
  void append(int leaf, int tokens);
  int split(int node, int position);
  void prune(int node);
  void accept(int sequence, int last);

  /// A query of this step, in the order of the calls.
  void query(int node, int position = tree::Query::kWhole) { queries_.push_back({node, position}); }

  bool hasFailed() const { return error_.has_value(); }
  const std::optional<support::Error> &error() const { return error_; }

private:
  void change(const tree::TreeEdit &edit);

  tree::KvTree &tree_;
  std::vector<tree::TreeEdit> &edits_;
  std::vector<tree::Query> &queries_;
  std::optional<support::Error> error_;
};

} // namespace deft::workload
