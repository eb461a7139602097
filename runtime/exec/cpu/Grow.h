#pragma once

#include <cstddef>
#include <vector>

namespace deft::exec {

/// For scratch memory, which grows to the size of the largest step and never shrinks.
template <typename T> void growTo(std::vector<T> &values, std::size_t size) {
  if (values.size() < size)
    values.resize(size);
}

} // namespace deft::exec
