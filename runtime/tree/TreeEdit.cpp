#include "runtime/tree/TreeEdit.h"

namespace deft::tree {

namespace {

template <typename T> support::Result<void> withoutValue(const support::Result<T> &result) {
  if (!result)
    return result.error();
  return {};
}

} // namespace

support::Result<void> apply(const TreeEdit &edit, KvTree &tree) {
  switch (edit.kind) {
  case TreeEdit::Kind::AddNode:
    return withoutValue(tree.addNode(edit.node, edit.value));
  case TreeEdit::Kind::Append:
    return tree.append(edit.node, edit.value);
  case TreeEdit::Kind::Split:
    return withoutValue(tree.split(edit.node, edit.value));
  case TreeEdit::Kind::Prune:
    return tree.prune(edit.node);
  case TreeEdit::Kind::Accept:
    return withoutValue(tree.accept(edit.node, edit.value));
  }
  return {};
}

} // namespace deft::tree
