#pragma once

#include "runtime/tree/KvTree.h"

#include <string>
#include <string_view>
#include <vector>

/// Trees on disk; specs/TREES.md describes the file for users.
///   {"format": "deftc-tree", "version": 1,
///    "nodes":   [{"parent": -1, "tokens": 200}, {"parent": 0, "tokens": 7}],
///    "queries": [{"node": 1}, {"node": 0, "position": 150}]}
/// Version 2 adds to a node, optionally, `name` and `location`, where its tokens lie in a cache. Without
/// locations whoever runs the tree lays it out (CachePlacement.h).
namespace deft::tree {

/// A tree and what else its file says.
struct TreeDocument {
  KvTree tree;
  std::vector<std::string> names; ///< of the nodes, empty ones where a node has none; or empty
  bool hasLocations = false;      ///< then every node has one
};

/// Reads strictly: an unknown or repeated key, a missing one or a number out of range is an error that
/// names its place, like `queries[3].position`.
support::Result<TreeDocument> parseTreeDocument(std::string_view json);
support::Result<TreeDocument> readTreeDocument(const std::string &path);

/// The tree alone, with its locations if the file has them.
support::Result<KvTree> parseTree(std::string_view json);
support::Result<KvTree> readTreeFile(const std::string &path);

/// The order of the nodes in a file, which counts them without holes and parents first: by index where that
/// is so in the tree already, else, in a tree that has lived, preorder.
std::vector<int> nodesInFileOrder(const KvTree &tree);

/// Two trees of equal nodes and queries give equal text, one node or query a line. Version 1, unless names
/// or locations make it 2. What is dead is not written.
std::string formatTree(const KvTree &tree);
std::string formatTree(const TreeDocument &document);
support::Result<void> writeTreeFile(const std::string &path, const KvTree &tree);
support::Result<void> writeTreeFile(const std::string &path, const TreeDocument &document);

} // namespace deft::tree
