#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace deft::api {

/// One value for each dimension of a tensor: a run checks several tensors without allocating memory.
template <typename T> class Dims {
public:
  static constexpr std::size_t kMost = 4;

  Dims() = default;
  Dims(std::initializer_list<T> values) {
    for (const T &value : values)
      push(value);
  }
  Dims(std::size_t count, const T &value) {
    for (std::size_t i = 0; i < count; ++i)
      push(value);
  }

  void push(const T &value) { values_[count_++] = value; } ///< at most kMost
  void pop() { --count_; }

  std::size_t size() const { return count_; }
  T &operator[](std::size_t index) { return values_[index]; }
  const T &operator[](std::size_t index) const { return values_[index]; }
  T *begin() { return values_.data(); }
  T *end() { return values_.data() + count_; }
  const T *begin() const { return values_.data(); }
  const T *end() const { return values_.data() + count_; }
  const T &back() const { return values_[count_ - 1]; }

private:
  std::array<T, kMost> values_{};
  std::size_t count_ = 0;
};

using Sizes = Dims<std::int64_t>;

} // namespace deft::api
