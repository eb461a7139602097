#pragma once

#include "runtime/tree/TreeEdit.h"

#include <optional>
#include <vector>

namespace deft::workload {

/// What a generator writes a step with: it changes the tree and records how. The first change that fails
/// is kept and all later ones do nothing, so generators need not look.
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
