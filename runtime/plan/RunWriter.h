#pragma once

#include "templates/deft/abi.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

namespace deft::plan {

/// Some consecutive tokens of a run, counted from its first.
struct Part {
  int begin, end;
  bool isEmpty() const { return begin == end; }
};

/// The place of a part among the parts of its run, in writing order.
enum class PartPlace {
  First, ///< ends the run unless a later part does
  Inner, ///< never ends the run
  Later  ///< ends the run if it is not empty and no later part does
};

/// Rewrites the runs of an item. The memory must have room for one run for each call.
class RunWriter {
public:
  RunWriter(const abi::Run *from, const abi::Run **endOf, abi::Run *to)
      : from_(from), endOf_(endOf), to_(to) {}

  /// Writes some tokens of the former run `r`. The part may be empty, but a branch on that would be
  /// mispredicted, so empty parts are written as well and then overwritten.
  void put(int r, Part part) {
    const int isEnd = int{part.begin < part.end} & int{part.end == from_[r].tokens};
    endOf_[r] = isEnd != 0 ? to_ : endOf_[r];
    write(r, part);
  }
  /// Writes the next part of a run. Calls must pass all its parts, in order.
  void put(int r, Part part, PartPlace where) {
    if (where == PartPlace::First)
      endOf_[r] = to_;
    else if (where == PartPlace::Later)
      endOf_[r] = part.begin < part.end ? to_ : endOf_[r];
    write(r, part);
  }
  /// Writes the item's first `count` former runs unchanged.
  void putAll(int count) {
    to_ = std::copy_n(from_, count, to_);
    std::iota(endOf_, endOf_ + count, to_ - count);
  }

  abi::Run *end() const { return to_; } ///< behind the last written run

private:
  void write(int r, Part part) {
    const abi::Run &run = from_[r];
    const int tokens = part.end - part.begin;
    to_->begin = tokens_;
    to_->tokens = tokens;
    to_->location = run.location + part.begin;
    to_->position = run.position + part.begin;
    std::memcpy(&to_->depth, &run.depth, sizeof(abi::Run) - offsetof(abi::Run, depth)); // in one piece
    to_->queryBegin += run.slope * part.begin;
    tokens_ += tokens;
    to_ += tokens > 0;
  }

  const abi::Run *from_;
  const abi::Run **endOf_; ///< for each former run: the new run that ends where it ended
  abi::Run *to_;
  int tokens_ = 0; ///< written so far
};

} // namespace deft::plan
