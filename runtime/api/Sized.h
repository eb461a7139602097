#pragma once

#include "runtime/api/Call.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

/// Structs that start with their size and grow at their end from version to version.
namespace deft::api {

/// An error if no version of the struct has the size `size`. `type` is its name.
Result<void> checkSize(const char *type, std::size_t size);
/// An error if a caller's newer struct uses a field that this library does not know.
Result<void> checkUnknown(const char *type, const void *given, std::size_t size, std::size_t known);

/// A caller's struct in this library's version. Fields that the caller's version lacks are 0; without a
/// struct, all of them are.
template <typename T> Result<T> readSized(const char *type, const T *given) {
  static_assert(std::is_trivial_v<T> && offsetof(T, size) == 0);
  T known{};
  if (given) {
    if (auto checked = checkSize(type, given->size); !checked)
      return checked.error();
    if (auto checked = checkUnknown(type, given, given->size, sizeof(T)); !checked)
      return checked.error();
    std::memcpy(&known, given, std::min(given->size, sizeof(T)));
  }
  if constexpr (requires { known.reserved; })
    if (known.reserved != 0)
      return wrong(std::string(type) + "::reserved", "is " + std::to_string(known.reserved) + ", not 0");
  known.size = sizeof(T);
  return known;
}

/// Fills the fields of the caller's struct that both versions have; the rest becomes 0.
template <typename T> Result<void> writeSized(const char *type, T value, T *to) {
  static_assert(std::is_trivial_v<T> && offsetof(T, size) == 0);
  if (auto checked = checkSize(type, to->size); !checked)
    return checked;
  value.size = to->size;
  if (to->size > sizeof(T))
    std::memset(reinterpret_cast<char *>(to) + sizeof(T), 0, to->size - sizeof(T));
  std::memcpy(static_cast<void *>(to), &value, std::min(value.size, sizeof(T)));
  return {};
}

} // namespace deft::api
