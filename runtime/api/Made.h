#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

/// Memory that a call allocates for its caller.
namespace deft::api {

/// A piece of memory, and the pieces that deft_free frees with it: a struct's texts.
struct alignas(std::max_align_t) PieceHead {
  PieceHead *next = nullptr;
};

/// Implements deft_free: frees the piece with this memory, and the following ones.
inline void giveBack(void *memory) noexcept {
  for (PieceHead *piece = memory ? static_cast<PieceHead *>(memory) - 1 : nullptr; piece;) {
    PieceHead *const next = piece->next;
    std::free(piece);
    piece = next;
  }
}

/// Makes a value for the caller with everything that it points to. Frees it all if it is not released.
template <typename T> class Made {
public:
  explicit Made(std::size_t count = 1) : value_(static_cast<T *>(piece(count * sizeof(T)))) {}
  ~Made() { giveBack(value_); }
  Made(const Made &) = delete;
  Made &operator=(const Made &) = delete;

  T &operator[](std::size_t index) { return value_[index]; }
  T *operator->() { return value_; }

  /// Passes the value to the caller.
  T *release() {
    T *const value = value_;
    value_ = nullptr;
    return value;
  }

  /// Adds memory that is freed along with the value; zeros.
  template <typename Other> Other *add(std::size_t count = 1) {
    static_assert(std::is_trivial_v<Other>);
    void *const memory = piece(count * sizeof(Other));
    PieceHead *const first = reinterpret_cast<PieceHead *>(value_) - 1;
    PieceHead *const added = static_cast<PieceHead *>(memory) - 1;
    added->next = first->next;
    first->next = added;
    return static_cast<Other *>(memory);
  }
  const char *text(std::string_view text) {
    char *const copy = add<char>(text.size() + 1);
    std::memcpy(copy, text.data(), text.size());
    return copy;
  }

private:
  static_assert(std::is_trivial_v<T>);

  static void *piece(std::size_t bytes) {
    void *const memory = std::calloc(1, sizeof(PieceHead) + bytes);
    if (!memory)
      throw std::bad_alloc();
    return new (memory) PieceHead + 1;
  }

  T *value_;
};

/// A copy of the text for the caller.
inline char *makeText(std::string_view text) {
  Made<char> copy(text.size() + 1);
  std::memcpy(&copy[0], text.data(), text.size());
  return copy.release();
}

} // namespace deft::api
