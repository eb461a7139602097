#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

/// Counts every call of operator new in the program, from all threads. It defines the operators, so exactly
/// one file of a program may include it.
namespace deft::test {

inline std::atomic<long long> allocations = 0;

inline void *allocateCounted(std::size_t bytes) {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}

inline void *allocateOrThrow(std::size_t bytes) {
  if (void *memory = allocateCounted(bytes))
    return memory;
  throw std::bad_alloc();
}

} // namespace deft::test

// GCC 12 inlines only one function of each pair below and then warns about a mismatch.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void *operator new(std::size_t bytes) { return deft::test::allocateOrThrow(bytes); }
void *operator new[](std::size_t bytes) { return deft::test::allocateOrThrow(bytes); }
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  return deft::test::allocateCounted(bytes);
}
void *operator new[](std::size_t bytes, const std::nothrow_t &) noexcept {
  return deft::test::allocateCounted(bytes);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
