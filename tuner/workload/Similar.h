#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>

namespace deft::workload {

/// Another tree of the same kind, as a server would meet it: some leaves fewer, lengths of nodes others by a
/// tenth or so, tokens of token trees still one each. The same seed gives the same tree everywhere; most have
/// the class of `tree`.
tree::KvTree similarTree(const tree::KvTree &tree, std::uint64_t seed);

} // namespace deft::workload
