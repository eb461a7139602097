#pragma once

#include "runtime/plan/Unfilled.h"
#include "templates/deft/abi.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace deft::plan {

/// A plan's runs, which are most of it: in memory of their own, or where an upload begins, so that they need
/// not be copied there. What is in somebody else's memory may be on its way to a device: who wants to change
/// it gets it moved first, unless that memory is what was lent for the change.
class RunList {
public:
  using Own = UnfilledVector<abi::Run>;

  /// Memory for runs that are to come, kept alive by whom it is a part of.
  struct Memory {
    std::shared_ptr<const void> owner;
    std::span<abi::Run> runs;
  };

  RunList() = default;
  RunList(const RunList &other) : own_(other.begin(), other.end()) {} ///< what is lent is lent once
  RunList(RunList &&other) noexcept { swap(other); }
  RunList &operator=(RunList other) noexcept {
    swap(other);
    return *this;
  }

  const abi::Run *data() const { return isLent() ? lent_.runs.data() : own_.data(); }
  std::size_t size() const { return isLent() ? lent_.runs.size() : own_.size(); }
  bool empty() const { return size() == 0; }
  const abi::Run *begin() const { return data(); }
  const abi::Run *end() const { return data() + size(); }
  const abi::Run &operator[](std::size_t i) const { return data()[i]; }

  /// Runs that are made anew or changed next are to stand there, if they fit: once, for then somebody else
  /// may be reading them. Until then nobody else reads or writes the memory. An empty one is none.
  void lend(Memory memory) { next_ = std::move(memory); }

  /// The memory of their own, to make them anew in; what was in somebody else's is nobody's runs any more.
  Own &own() {
    lent_ = {};
    return own_;
  }
  /// Room for as many runs, to be filled from the front, and then cut off behind those that there are. It is
  /// none of own(), unless nobody lends as much.
  abi::Run *renew(std::size_t most) {
    if (Memory next = std::exchange(next_, {}); next.owner && most <= next.runs.size()) {
      lent_ = {std::move(next.owner), next.runs.first(most)};
      return lent_.runs.data();
    }
    own().resize(most);
    return own_.data();
  }
  void cutTo(std::size_t count) {
    if (isLent())
      lent_.runs = lent_.runs.first(count);
    else
      own_.resize(count);
  }
  /// All of them, to be changed: in the memory that is lent, or in memory of their own.
  std::span<abi::Run> toChange() {
    const Memory from = isLent() ? lent_ : Memory{nullptr, own_};
    if (abi::Run *const to = renew(from.runs.size()); to != from.runs.data())
      std::copy(from.runs.begin(), from.runs.end(), to);
    return isLent() ? lent_.runs : std::span<abi::Run>(own_);
  }

private:
  bool isLent() const { return lent_.owner != nullptr; }
  void swap(RunList &other) noexcept {
    own_.swap(other.own_);
    std::swap(lent_, other.lent_);
    std::swap(next_, other.next_);
  }

  Own own_;
  Memory lent_; ///< where they are; no owner: in own_
  Memory next_;
};

} // namespace deft::plan
