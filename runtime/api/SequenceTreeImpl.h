#pragma once

#include "runtime/api/TreeImpl.h"
#include "runtime/tree/SequenceTree.h"

#include <deft/sequence_tree.hpp>

namespace deft {

struct SequenceTree::Impl {
  tree::SequenceTree sequences;
  Tree view; ///< looks at the tree of `sequences`

  explicit Impl(tree::SequenceTree of) : sequences(std::move(of)) {
    view.mutableImpl().look(sequences.tree());
  }
};

} // namespace deft
