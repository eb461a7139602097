#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Tree.h"

#include <deft/c/followers.h>

#include <span>

namespace deft::api {

/// An array of C; none where the pointer is null.
template <typename T> std::span<const T> spanOf(const T *values, std::size_t count) {
  return values ? std::span(values, count) : std::span<const T>();
}

/// One call's plans, which follow the step that it takes.
class Followers {
public:
  static Result<Followers> of(deft_followers *given);

  /// After a part of the call: whether the step is taken. Written before each part, so that it is true also
  /// where memory runs out in the middle of one.
  Result<void> note(bool isTaken);
  /// Brings the plans to the tree as it is now.
  Result<void> follow(const deft_tree &tree);

private:
  Followers(deft_followers *given, const deft_followers &known) : given_(given), known_(known) {}

  deft_followers *given_;
  deft_followers known_;
};

/// A step of what changes the tree, `take`, and of plans of the tree.
template <typename Take> Result<void> takeStep(const deft_tree &tree, deft_followers *given, Take &&take) {
  auto followers = Followers::of(given);
  if (!followers)
    return followers.error();
  if (auto written = followers->note(false); !written)
    return written;
  if (auto taken = take(); !taken)
    return taken;
  if (auto written = followers->note(true); !written)
    return written;
  const Result<void> followed = followers->follow(tree);
  const auto written = followers->note(true);
  return followed ? written : followed;
}

} // namespace deft::api
