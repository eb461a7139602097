#include "tuner/workload/Editor.h"

namespace deft::workload {

using tree::TreeEdit;

int Editor::addNode(int parent, int tokens) {
  if (hasFailed())
    return -1;
  const auto added = tree_.addNode(parent, tokens);
  if (!added) {
    error_ = added.error();
    return -1;
  }
  edits_.push_back({TreeEdit::Kind::AddNode, parent, tokens});
  return *added;
}

int Editor::split(int node, int position) {
  change({TreeEdit::Kind::Split, node, position});
  return hasFailed() ? -1 : tree_.nodes()[node].parent; // the new node has the first tokens
}

void Editor::append(int leaf, int tokens) { change({TreeEdit::Kind::Append, leaf, tokens}); }
void Editor::prune(int node) { change({TreeEdit::Kind::Prune, node, 0}); }
void Editor::accept(int sequence, int last) { change({TreeEdit::Kind::Accept, sequence, last}); }

void Editor::change(const TreeEdit &edit) {
  if (hasFailed())
    return;
  if (auto done = tree::apply(edit, tree_); !done)
    error_ = done.error();
  else
    edits_.push_back(edit);
}

} // namespace deft::workload
