#pragma once

#include "runtime/tree/KvTree.h"

#include <deft/tree.hpp>

#include <atomic>
#include <memory>

namespace deft {

/// What plans remember of the tree they were made for: who it is, and its generation. Apart from the tree, so
/// that a plan may outlive it; atomic, so that a run on another thread may look while the tree is changed.
using TreeStamp = std::atomic<std::uint64_t>;

struct Tree::Impl {
  tree::KvTree tree;
  std::shared_ptr<TreeStamp> stamp = std::make_shared<TreeStamp>(0);

  Impl() = default;
  explicit Impl(tree::KvTree of) : tree(std::move(of)) { noteChange(); }
  Impl(const Impl &other) : Impl(other.tree) {} ///< another tree from now on, so another stamp

  void noteChange() { stamp->store(tree.generation(), std::memory_order_release); }
};

} // namespace deft
