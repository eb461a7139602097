#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace deft::exec {

/// Allocates memory at the beginning of a cache line, as the pools of servers do. So the vectors of a cache
/// never span more lines than necessary.
template <typename Value> struct LineAllocator {
  using value_type = Value;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <typename Other> LineAllocator(const LineAllocator<Other> &) {}

  Value *allocate(std::size_t count) {
    return static_cast<Value *>(::operator new(count * sizeof(Value), kLine));
  }
  void deallocate(Value *values, std::size_t) { ::operator delete(values, kLine); }

  template <typename Other> bool operator==(const LineAllocator<Other> &) const { return true; }
};

template <typename Value> using AlignedVector = std::vector<Value, LineAllocator<Value>>;

} // namespace deft::exec
