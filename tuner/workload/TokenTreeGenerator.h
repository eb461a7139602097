#pragma once

#include "tuner/workload/Generator.h"

#include <vector>

namespace deft::workload {

/// Speculative decoding of one sequence. At every step a tree of guessed tokens hangs below it, a node and
/// a query for each token; then some of its path is accepted, which makes the sequence longer, and the
/// tree is guessed anew.
class TokenTreeGenerator : public Generator {
public:
  /// `parents` of the guessed tokens: an earlier one, or -1, below the sequence.
  TokenTreeGenerator(int prompt, std::vector<int> parents);

  void start(Editor &editor) override;
  void advance(int step, Editor &editor) override;

protected:
  /// What was accepted between step - 1 and step: the last accepted token of the tree (-1: none), and how
  /// many more tokens than its path the sequence gains.
  struct Accepted {
    int last = -1;
    int more = 0;
  };
  virtual Accepted accept(int step) = 0;

  const std::vector<int> &parents() const { return parents_; }
  int depthOf(int token) const; ///< tokens on its path, itself included

private:
  void guess(Editor &editor);

  int prompt_;
  std::vector<int> parents_;
  int sequence_ = -1;
  std::vector<int> nodes_; ///< of the guessed tokens
};

} // namespace deft::workload
