#pragma once

#include "runtime/tree/KvTree.h"

#include <string>
#include <string_view>
#include <vector>

/// Trees on disk; specs/TREES.md describes the file for users.
///   {"format": "deftc-tree", "version": 1,
///    "nodes":   [{"parent": -1, "tokens": 200}, {"parent": 0, "tokens": 7}],
///    "queries": [{"node": 1}, {"node": 0, "position": 150}]}
/// Version 2 adds optional keys to a node: `name`, and `location`, the place of its tokens in a cache.
/// Without locations, programs that run the tree lay it out themselves (CachePlacement.h).
namespace deft::tree {

/// A tree and the other contents of its file.
struct TreeDocument {
  KvTree tree;
  std::vector<std::string> names; ///< one per node, empty for a node without one; or no entries
  bool hasLocations = false;      ///< if set, every node has one
};

/// Reads strictly: a key that is unknown, repeated or missing, or a number out of range, is an error that
/// names its place, such as `queries[3].position`.
support::Result<TreeDocument> parseTreeDocument(std::string_view json);
support::Result<TreeDocument> readTreeDocument(const std::string &path);

/// Only the tree, with its locations if the file has them.
support::Result<KvTree> parseTree(std::string_view json);
support::Result<KvTree> readTreeFile(const std::string &path);

/// The order of the nodes in a file, which has no gaps and lists parents first: by index if that fits, else
/// preorder (a new node may have taken a pruned one's number).
std::vector<int> nodesInFileOrder(const KvTree &tree);

/// Trees with equal nodes and queries give equal text, with one node or query per line. It is version 2 if it
/// has names or locations, else version 1. Dead nodes are not written.
std::string formatTree(const KvTree &tree);
std::string formatTree(const TreeDocument &document);
support::Result<void> writeTreeFile(const std::string &path, const KvTree &tree);
support::Result<void> writeTreeFile(const std::string &path, const TreeDocument &document);

} // namespace deft::tree
