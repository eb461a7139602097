#pragma once

#include "runtime/tree/KvTree.h"

#include <deft/tree.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace deft {

/// What plans remember of the tree they were made for: who it is, and its generation. Apart from the tree, so
/// that a plan may outlive it; atomic, so that a run on another thread may look while the tree is changed.
using TreeStamp = std::atomic<std::uint64_t>;

struct Tree::Impl {
  std::shared_ptr<TreeStamp> stamp = std::make_shared<TreeStamp>(0);

  Impl() = default;
  explicit Impl(tree::KvTree of) : own_(std::move(of)) { noteChange(); }
  /// Another tree from now on, so another stamp; a copy of a view is a tree of its own.
  Impl(const Impl &other) : Impl(other.tree()) {}
  Impl &operator=(const Impl &) = delete;

  const tree::KvTree &tree() const { return viewed_ ? *viewed_ : own_; }
  tree::KvTree &change() { return own_; } ///< not of a view: programs get views as const only

  /// Becomes a view of a tree that lives at least as long.
  void look(const tree::KvTree &at) {
    viewed_ = &at;
    noteChange();
  }

  void noteChange() { stamp->store(tree().generation(), std::memory_order_release); }

private:
  tree::KvTree own_;
  const tree::KvTree *viewed_ = nullptr;
};

inline std::vector<tree::Query> toInternal(std::span<const Query> queries) {
  std::vector<tree::Query> own;
  own.reserve(queries.size());
  for (const Query &query : queries)
    own.push_back({query.node, query.position});
  return own;
}

} // namespace deft
