#pragma once

#include "runtime/plan/Unfilled.h"
#include "templates/deft/abi.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace deft::plan {

/// The runs of a plan, which are most of its bytes: in memory of its own or, to save a copy, in a lent upload
/// buffer. A device may be reading lent memory, so a change first moves the runs elsewhere, unless that
/// memory was lent for this change.
class RunList {
public:
  using Own = UnfilledVector<abi::Run>;

  /// Memory for the next runs. `owner` keeps it alive.
  struct Memory {
    std::shared_ptr<const void> owner;
    std::span<abi::Run> runs;
  };

  RunList() = default;
  RunList(const RunList &other) : own_(other.begin(), other.end()) {} ///< a copy has memory of its own
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

  /// Lends memory for the runs that are made or changed next, if they fit, once: afterwards a device may read
  /// it. Until then nothing else may read or write it. An empty Memory lends nothing.
  void lend(Memory memory) { next_ = std::move(memory); }
  /// Exchanges what is lent for the runs that are made next.
  void swapLoan(RunList &other) { std::swap(next_, other.next_); }

  /// Memory of its own, to make the runs anew. Runs in lent memory are dropped.
  Own &own() {
    lent_ = {};
    return own_;
  }
  /// Room for up to `most` runs: fill it from the front, then cut it with cutTo(). It is the lent memory if
  /// that is large enough, else own().
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
  /// All runs, to be changed: moved to newly lent memory if there is some, else to memory of its own.
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
  Memory lent_; ///< where the runs are; no owner: in own_
  Memory next_;
};

} // namespace deft::plan
