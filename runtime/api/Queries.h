#pragma once

#include "runtime/api/Call.h"
#include "runtime/tree/KvTree.h"

#include <deft/c/tree.h>

#include <optional>
#include <vector>

/// Positions and queries in the form of the API.
namespace deft::api {

/// The number of a node's tokens; none: all.
inline std::optional<int> positionOf(int32_t position) {
  return position == DEFT_WHOLE ? std::nullopt : std::optional<int>(position);
}

inline Result<std::vector<tree::Query>> queriesOf(const deft_query *queries, size_t count) {
  if (auto checked = checkArray("queries", queries, count); !checked)
    return checked.error();
  std::vector<tree::Query> own;
  own.reserve(count);
  for (size_t i = 0; i < count; ++i)
    own.push_back({queries[i].node, queries[i].position});
  return own;
}

inline Result<void> checkParent(int32_t parent) {
  return parent >= 0 ? Result<void>()
                     : wrong("parent", "is " + std::to_string(parent) + ", which is no node",
                             "a root is added by a call of its own");
}

} // namespace deft::api
