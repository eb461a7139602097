#pragma once

#include "compiler/support/Result.h"

#include <cstddef>
#include <string>

namespace deft::peers {

/// Named shared memory (POSIX): one process makes it and others map it. The memory lives as long as a process
/// maps it; the name until its maker ends or calls forgetName.
class Segment {
public:
  Segment() = default;
  Segment(Segment &&other) noexcept { swap(other); }
  Segment &operator=(Segment &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Segment();

  /// Makes it, filled with zeros. Empty (no error) if the name exists.
  static support::Result<Segment> make(const std::string &name, std::size_t bytes);
  /// Maps an existing one. Empty (no error) if there is none, or a smaller one that is still being made.
  static support::Result<Segment> open(const std::string &name, std::size_t bytes);
  /// After this, no process can find it.
  void forgetName();
  static void forget(const std::string &name);

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte *memory() const { return memory_; }

private:
  void swap(Segment &other) noexcept;

  std::string name_; ///< for the maker; otherwise empty
  std::byte *memory_ = nullptr;
  std::size_t bytes_ = 0;
};

} // namespace deft::peers
