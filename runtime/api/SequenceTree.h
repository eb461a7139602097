#pragma once

#include "runtime/api/Tree.h"
#include "runtime/tree/SequenceTree.h"

#include <deft/c/sequence_tree.h>

struct deft_sequence_tree {
  deft::tree::SequenceTree sequences;
  deft_tree view; ///< of the tree of `sequences`

  explicit deft_sequence_tree(deft::tree::SequenceTree of) : sequences(std::move(of)) {
    view.look(sequences.tree());
  }
};
