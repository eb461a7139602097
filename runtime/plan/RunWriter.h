#pragma once

#include "templates/deft/abi.h"

namespace deft::plan {

/// Tokens of a run, from its first one on.
struct Part {
  int begin, end;
  bool isEmpty() const { return begin == end; }
};

/// Writes an item's runs anew.
class RunWriter {
public:
  RunWriter(const abi::Run *from, int *endOf, const abi::Run *all, abi::Run *to)
      : from_(from), endOf_(endOf), all_(all), to_(to) {}

  /// Some tokens of the former run `r` come next.
  void put(int r, Part part) {
    if (part.isEmpty())
      return;
    const abi::Run &run = from_[r];
    const int tokens = part.end - part.begin;
    *to_ = run;
    to_->begin = tokens_;
    to_->tokens = tokens;
    to_->location = run.location + part.begin;
    to_->position = run.position + part.begin;
    if (part.end == run.tokens)
      endOf_[r] = static_cast<int>(to_ - all_);
    tokens_ += tokens;
    ++to_;
  }
  void putAll(int r) { put(r, {0, from_[r].tokens}); }
  /// So many of them, where they are the item's in their order.
  void putFirst(int count) {
    for (int r = 0; r < count; ++r)
      putAll(r);
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
