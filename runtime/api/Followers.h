#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Tree.h"

#include <deft/c/followers.h>

#include <span>

namespace deft::api {

/// An array from C; empty if the pointer is null.
template <typename T> std::span<const T> spanOf(const T *values, std::size_t count) {
  return values ? std::span(values, count) : std::span<const T>();
}

/// The plans in a call that follow the step of the call.
class Followers {
public:
  static Result<Followers> of(deft_followers *given);

  /// Writes, after each part of the call, whether the step is taken. It is written before each part as well,
  /// so that it is correct even if memory runs out during one.
  Result<void> note(bool isTaken);
  /// Updates the plans to the current tree.
  Result<void> follow(const deft_tree &tree);

private:
  Followers(deft_followers *given, const deft_followers &known) : given_(given), known_(known) {}

  deft_followers *given_;
  deft_followers known_;
};

/// Takes a step that changes the tree (`take`), then updates plans of the tree.
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
