#pragma once

#include "tuner/workload/Generator.h"

#include <vector>

namespace deft::workload {

/// Prompts first, then branches that each decode one token per step until they are long enough.
class BranchGenerator : public Generator {
public:
  explicit BranchGenerator(std::uint64_t seed) : random_(seed) {}

  void start(Editor &editor) override;
  void advance(int step, Editor &editor) override;
  int steps() const override { return lastStep_; }

protected:
  /// Adds the prompts, and calls branch() for everything that is decoded below them.
  virtual void build(Editor &editor) = 0;

  /// A leaf with `firstTokens` at step 1 that decodes until step `lastStep`.
  void branch(int parent, int firstTokens, int lastStep);

  /// Makes finished branches leave the tree.
  void pruneFinished() { prunesFinished_ = true; }

  Random random_;

private:
  struct Branch {
    int parent, leaf, firstTokens, lastStep;
  };
  std::vector<Branch> branches_;
  int lastStep_ = 0;
  bool prunesFinished_ = false;
};

} // namespace deft::workload
