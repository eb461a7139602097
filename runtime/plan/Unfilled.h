#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace deft::plan {

/// Like std::allocator, but new elements stay uninitialised: code that makes room must write all of it.
template <class T> struct UnfilledAllocator : std::allocator<T> {
  UnfilledAllocator() = default;
  template <class U> UnfilledAllocator(const UnfilledAllocator<U> &) noexcept {}
  template <class U> struct rebind {
    using other = UnfilledAllocator<U>;
  };
  template <class U> void construct(U *at) noexcept { ::new (static_cast<void *>(at)) U; }
  template <class U, class... Arguments> void construct(U *at, Arguments &&...arguments) {
    std::construct_at(at, std::forward<Arguments>(arguments)...);
  }
};

template <class T> using UnfilledVector = std::vector<T, UnfilledAllocator<T>>;

} // namespace deft::plan
