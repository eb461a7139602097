#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Tree.h"
#include "runtime/tree/BeamTree.h"

#include <deft/c/beam_tree.h>

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

struct deft_beam_tree {
  deft_tree view; ///< of `beams`

  deft_beam_tree(deft::tree::BeamTree of, int mostBeams) : beams_(std::move(of)), mostBeams_(mostBeams) {
    view.look(beams_);
  }

  const deft::tree::BeamTree &beams() const { return beams_; }
  const std::vector<std::int32_t> &table() const { return table_; }
  deft_beam_step step() const;

  deft::api::Result<void> start(const deft_beam_histories &given);
  deft::api::Result<void> advance(std::span<const std::int32_t> parents);
  deft::api::Result<void> addPages(std::span<const std::int32_t> pages);
  std::vector<std::int32_t> takePages(std::size_t most);

private:
  /// Stores the step's data as page ids and slots of the cache.
  void noteStep();

  deft::tree::BeamTree beams_;
  int mostBeams_;
  std::vector<std::int32_t> table_;
  std::unordered_set<std::int32_t> inUse_; ///< page ids of the table
  std::vector<std::int64_t> slots_;
  std::vector<std::int32_t> positions_, newPages_, freedPages_;
};
