#include "tuner/workload/TokenTreeGenerator.h"

namespace deft::workload {

TokenTreeGenerator::TokenTreeGenerator(int prompt, std::vector<int> parents)
    : prompt_(prompt), parents_(std::move(parents)) {}

int TokenTreeGenerator::depthOf(int token) const {
  int depth = 0;
  for (; token >= 0; token = parents_[token])
    ++depth;
  return depth;
}

void TokenTreeGenerator::guess(Editor &editor) {
  nodes_.clear();
  for (int parent : parents_) {
    nodes_.push_back(editor.addNode(parent < 0 ? sequence_ : nodes_[parent], 1));
    editor.query(nodes_.back());
  }
}

void TokenTreeGenerator::start(Editor &editor) {
  sequence_ = editor.addNode(-1, prompt_);
  guess(editor);
}

void TokenTreeGenerator::advance(int step, Editor &editor) {
  const Accepted accepted = accept(step);
  editor.accept(sequence_, accepted.last < 0 ? sequence_ : nodes_[accepted.last]);
  if (accepted.more > 0)
    editor.append(sequence_, accepted.more);
  guess(editor);
}

} // namespace deft::workload
