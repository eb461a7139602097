#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft::sharing {

/// From any 64 bits to a number that is not negative. Keys that were erased leave no mark behind, so that a
/// map which lives for long is as quick as a new one.
class IndexMap {
public:
  int find(std::uint64_t key) const; ///< -1: it is not there
  void set(std::uint64_t key, int value);
  void erase(std::uint64_t key); ///< it is there
  void clear();
  std::size_t size() const { return size_; }

private:
  struct Entry {
    std::uint64_t key = 0;
    int value = -1; ///< -1: free
  };

  /// Where the search for a key begins. Keys are often neighbours, so all of their bits move the place.
  std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>((key ^ (key >> 32)) * 0x9e3779b97f4a7c15u >> shift_);
  }
  std::size_t next(std::size_t at) const { return (at + 1) & (entries_.size() - 1); }
  std::size_t placeOf(std::uint64_t key) const; ///< the key's, or the free one where it would go
  void widen();

  std::vector<Entry> entries_; ///< a power of two of them, at most half in use; or none
  std::size_t size_ = 0;
  int shift_ = 64;
};

} // namespace deft::sharing
