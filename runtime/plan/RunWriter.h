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

/// Writes an item's runs anew, where there is room for one of each call.
class RunWriter {
public:
  RunWriter(const abi::Run *from, int *endOf, const abi::Run *all, abi::Run *to)
      : from_(from), endOf_(endOf), all_(all), to_(to) {}

  /// Some tokens of the former run `r` come next, or none: which of them are none nobody can predict, so that
  /// they are written too, and written over.
  void put(int r, Part part) {
    const abi::Run &run = from_[r];
    const int tokens = part.end - part.begin;
    to_->begin = tokens_;
    to_->tokens = tokens;
    to_->location = run.location + part.begin;
    to_->position = run.position + part.begin;
    std::memcpy(&to_->depth, &run.depth, sizeof(abi::Run) - offsetof(abi::Run, depth)); // in one piece
    const int here = static_cast<int>(to_ - all_);
    const int isAny = tokens > 0;
    endOf_[r] = (isAny & int{part.end == run.tokens}) != 0 ? here : endOf_[r];
    tokens_ += tokens;
    to_ += isAny;
  }
  /// So many of them, which are the item's in their order.
  void putAll(int count) {
    to_ = std::copy_n(from_, count, to_);
    std::iota(endOf_, endOf_ + count, static_cast<int>(to_ - count - all_));
  }

  abi::Run *end() const { return to_; } ///< behind what was written

private:
  const abi::Run *from_;
  int *endOf_; ///< of each former run: which of all runs now ends where it did
  const abi::Run *all_;
  abi::Run *to_;
  int tokens_ = 0; ///< so far
};

} // namespace deft::plan
