#pragma once

#include <cstddef>
#include <vector>

namespace deft::exec {

/// Scratch memory grows to the largest step and stays.
template <typename T> void growTo(std::vector<T> &values, std::size_t size) {
  if (values.size() < size)
    values.resize(size);
}

} // namespace deft::exec
