#pragma once

#include "templates/deft/abi.h"

namespace deft::plan {

/// Some of an item's runs, token by token.
class RunWalk {
public:
  RunWalk(const abi::Run *runs, const int *next, const int *end) : runs_(runs), next_(next), end_(end) {
    open();
  }

  /// The item's tokens from `begin` to `end`, which are not more than there are. `to` is behind the item's
  /// last run, which becomes longer where it ends at these.
  void fill(int begin, int end, abi::Run *&to) {
    while (begin < end)
      begin = give(begin, end, to);
  }

private:
  /// Gives tokens of one run, at most; returns the first one after them.
  int give(int begin, int end, abi::Run *&to) {
    if (end - begin >= left_) { // an exception, so that nothing waits for what is left
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

  /// The next run.
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
  const int *next_, *end_; ///< which of the runs are left
  // Of `run_`, what has not been given:
  int left_ = 0, location_ = 0, position_ = 0, queryBegin_ = 0;
  abi::Run *part_ = nullptr; ///< that has the last of its tokens
};

} // namespace deft::plan
