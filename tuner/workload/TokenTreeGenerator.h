#pragma once

#include "tuner/workload/Generator.h"

#include <vector>

namespace deft::workload {

/// Speculative decoding of one sequence. At every step a tree of guessed tokens hangs below it, with a node
/// and a query for each token. Then some of its path is accepted and extends the sequence, and a new tree is
/// guessed.
class TokenTreeGenerator : public Generator {
public:
  /// `parents`: for each guessed token an earlier one, or -1 for the sequence.
  TokenTreeGenerator(int prompt, std::vector<int> parents);

  void start(Editor &editor) override;
  void advance(int step, Editor &editor) override;

protected:
  /// The tokens accepted between step - 1 and step: the last accepted token of the tree (-1: none), and the
  /// number of tokens that the sequence gains beyond its path.
  struct Accepted {
    int last = -1;
    int more = 0;
  };
  virtual Accepted accept(int step) = 0;

  const std::vector<int> &parents() const { return parents_; }
  int depthOf(int token) const; ///< tokens on its path, including itself

private:
  void guess(Editor &editor);

  int prompt_;
  std::vector<int> parents_;
  int sequence_ = -1;
  std::vector<int> nodes_; ///< of the guessed tokens
};

} // namespace deft::workload
