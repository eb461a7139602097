#pragma once

#include "runtime/tree/KvTree.h"

#include <string>
#include <string_view>

/// Trees on disk:
///   {"format": "deftc-tree", "version": 1,
///    "nodes":   [{"parent": -1, "tokens": 200}, {"parent": 0, "tokens": 7}],
///    "queries": [{"node": 1}, {"node": 0, "position": 150}]}
/// A parent is the index of an earlier node, or -1 for a root; several roots are allowed. `position` is
/// how many tokens of its own node a query sees, all of them when absent. Where tokens lie in a cache is
/// not in the file: whoever runs the tree lays it out (CachePlacement.h).
namespace deft::tree {

/// Reads strictly: an unknown or repeated key, a missing one or a number out of range is an error that
/// names its place, like `queries[3].position`.
support::Result<KvTree> parseTree(std::string_view json);
support::Result<KvTree> readTreeFile(const std::string &path);

/// Two trees of equal nodes and queries give equal text, one node or query a line.
std::string formatTree(const KvTree &tree);
support::Result<void> writeTreeFile(const std::string &path, const KvTree &tree);

} // namespace deft::tree
