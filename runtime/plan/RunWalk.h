#pragma once

#include "templates/deft/abi.h"

namespace deft::plan {

/// Walks over some runs of an item, token by token.
class RunWalk {
public:
  RunWalk(const abi::Run *runs, const int *next, const int *end) : runs_(runs), next_(next), end_(end) {
    open();
  }

  /// Writes the tokens [begin, end) of the new item, which must not be more than are left. `to` is behind the
  /// item's last new run, which grows if these tokens continue it.
  void fill(int begin, int end, abi::Run *&to) {
    while (begin < end)
      begin = give(begin, end, to);
  }

private:
  /// Writes tokens of at most one run; returns the first token after them.
  int give(int begin, int end, abi::Run *&to) {
    if (end - begin >= left_) { // rare: a predicted branch does not wait for left_
      end = begin + left_;
      write(begin, left_, to);
      ++next_;
      open();
    } else {
      const int tokens = end - begin;
      write(begin, tokens, to);
      left_ -= tokens;
      location_ += tokens;
      position_ += tokens;
      queryBegin_ += run_->slope * tokens;
    }
    return end;
  }

  void write(int begin, int tokens, abi::Run *&to) {
    if (part_ != nullptr && part_ + 1 == to) {
      part_->tokens += tokens;
    } else {
      part_ = to++;
      *part_ = {begin,       tokens,         location_,   position_, run_->depth,
                queryBegin_, run_->queryEnd, run_->slope, 0};
    }
  }

  /// Opens the next run.
  void open() {
    part_ = nullptr;
    if (next_ == end_)
      return;
    run_ = runs_ + *next_;
    left_ = run_->tokens;
    location_ = run_->location;
    position_ = run_->position;
    queryBegin_ = run_->queryBegin;
  }

  const abi::Run *runs_, *run_ = nullptr;
  const int *next_, *end_; ///< the runs that are left
  // The tokens of `run` that are not written yet:
  int left_ = 0, location_ = 0, position_ = 0, queryBegin_ = 0;
  abi::Run *part_ = nullptr; ///< the new run that holds its last written tokens
};

} // namespace deft::plan
