#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

namespace deft::tree {

/// Whether each living node is placed. The error names one of which nobody
/// has.
support::Result<void> checkPlaced(const KvTree &tree);

/// Whether all living nodes have slots of their own. A tree does not look at the locations that it is given:
/// where those of two nodes overlap, one of the two reads the other's tokens. The error names two such nodes.
/// In time n log n.
support::Result<void> checkPlaces(const KvTree &tree);

} // namespace deft::tree
