#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

namespace deft::tree {

/// Checks that each living node with tokens is placed. The error names the
/// first node that is not, with its number of tokens.
support::Result<void> checkPlaced(const KvTree &tree);

/// Checks that no two living nodes share a slot. A tree accepts any locations: if two nodes
/// overlap, one of them reads the other's tokens. The error names two such nodes. Takes time n log
/// n.
support::Result<void> checkPlaces(const KvTree &tree);

} // namespace deft::tree
