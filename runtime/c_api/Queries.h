#pragma once

#include <deft/c/tree.h>
#include <deft/tree.hpp>

#include <optional>
#include <vector>

/// Between the positions and queries of C and of C++.
namespace deft::c {

/// How many of a node's tokens; none: all.
inline std::optional<int> positionOf(int32_t position) {
  return position == DEFT_WHOLE ? std::nullopt : std::optional<int>(position);
}

inline std::vector<Query> queriesOf(const deft_query *queries, size_t count) {
  std::vector<Query> own;
  own.reserve(count);
  for (size_t i = 0; i < count; ++i)
    own.push_back({.node = queries[i].node, .position = queries[i].position});
  return own;
}

} // namespace deft::c
