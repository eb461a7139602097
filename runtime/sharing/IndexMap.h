#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft::sharing {

/// Maps 64-bit keys to numbers that are not negative. Erased keys leave no trace, so a map stays fast however
/// long it is used.
class IndexMap {
public:
  int find(std::uint64_t key) const; ///< -1: not found
  void set(std::uint64_t key, int value);
  void erase(std::uint64_t key); ///< the key must exist
  void clear();
  std::size_t size() const { return size_; }

private:
  struct Entry {
    std::uint64_t key = 0;
    int value = -1; ///< -1: free
  };

  /// The place where the search for a key begins. Keys are often neighbours, so all their bits affect it.
  std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>((key ^ (key >> 32)) * 0x9e3779b97f4a7c15u >> shift_);
  }
  std::size_t next(std::size_t at) const { return (at + 1) & (entries_.size() - 1); }
  std::size_t placeOf(std::uint64_t key) const; ///< of the key, or the free place for it
  void widen();

  std::vector<Entry> entries_; ///< empty, or a power of two, at most half of them in use
  std::size_t size_ = 0;
  int shift_ = 64;
};

} // namespace deft::sharing
