#include "tuner/workload/Branches.h"

#include <algorithm>

namespace deft::workload {

void BranchGenerator::branch(int parent, int firstTokens, int lastStep) {
  branches_.push_back({parent, -1, firstTokens, lastStep});
  lastStep_ = std::max(lastStep_, lastStep);
}

void BranchGenerator::start(Editor &editor) {
  build(editor);
  for (Branch &branch : branches_) {
    branch.leaf = editor.addNode(branch.parent, branch.firstTokens);
    editor.query(branch.leaf);
  }
}

void BranchGenerator::advance(int step, Editor &editor) {
  for (const Branch &branch : branches_) {
    if (step <= branch.lastStep) {
      editor.append(branch.leaf, 1);
      editor.query(branch.leaf);
    } else if (prunesFinished_ && step == branch.lastStep + 1) {
      editor.prune(branch.leaf);
    }
  }
}

} // namespace deft::workload
