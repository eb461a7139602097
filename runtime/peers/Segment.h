#pragma once

#include "compiler/support/Result.h"

#include <cstddef>
#include <string>

namespace deft::peers {

/// Shared memory of a name (POSIX), which one process makes and others map. The memory goes with the last
/// process that has it; the name, with its maker or before (forgetName).
class Segment {
public:
  Segment() = default;
  Segment(Segment &&other) noexcept { swap(other); }
  Segment &operator=(Segment &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Segment();

  /// Makes it, filled with zeros. Empty (no error) where there is one of the name.
  static support::Result<Segment> make(const std::string &name, std::size_t bytes);
  /// Maps one that is there. Empty (no error) where there is none, or a smaller one: it is being made.
  static support::Result<Segment> open(const std::string &name, std::size_t bytes);
  /// Nobody finds it any more.
  void forgetName();
  static void forget(const std::string &name);

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte *memory() const { return memory_; }

private:
  void swap(Segment &other) noexcept;

  std::string name_; ///< of a maker, else empty
  std::byte *memory_ = nullptr;
  std::size_t bytes_ = 0;
};

} // namespace deft::peers
