#pragma once

#include "templates/deft/abi.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

namespace deft::plan {

/// Tokens of a run, from its first one on.
struct Part {
  int begin, end;
  bool isEmpty() const { return begin == end; }
};

/// Of a run's parts, in the order in which they come.
enum class PartPlace {
  First, ///< ends the run unless a later one does
  Inner, ///< ends no run
  Later  ///< ends the run unless it is empty, or one behind it does
};

/// Writes an item's runs anew, where there is room for one of each call.
class RunWriter {
public:
  RunWriter(const abi::Run *from, const abi::Run **endOf, abi::Run *to)
      : from_(from), endOf_(endOf), to_(to) {}

  /// Some tokens of the former run `r` come next, or none: which of them are none nobody can predict, so that
  /// they are written too, and written over.
  void put(int r, Part part) {
    const int isEnd = int{part.begin < part.end} & int{part.end == from_[r].tokens};
    endOf_[r] = isEnd != 0 ? to_ : endOf_[r];
    write(r, part);
  }
  /// Writes all of a run's parts in their order.
  void put(int r, Part part, PartPlace where) {
    if (where == PartPlace::First)
      endOf_[r] = to_;
    else if (where == PartPlace::Later)
      endOf_[r] = part.begin < part.end ? to_ : endOf_[r];
    write(r, part);
  }
  /// Writes the item's runs, so many, in their order.
  void putAll(int count) {
    to_ = std::copy_n(from_, count, to_);
    std::iota(endOf_, endOf_ + count, to_ - count);
  }

  abi::Run *end() const { return to_; } ///< behind what was written

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
  const abi::Run **endOf_; ///< of each former run: which one now ends where it did
  abi::Run *to_;
  int tokens_ = 0; ///< so far
};

} // namespace deft::plan
