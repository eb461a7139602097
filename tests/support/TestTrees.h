#pragma once

#include "runtime/tree/KvTree.h"

#include <string>
#include <utility>
#include <vector>

namespace deft::test {

using NamedTree = std::pair<std::string, tree::KvTree>;

/// Twenty trees of different shapes, small enough for a scalar oracle; tests/support/trees contains them as
/// files. The edge cases come first, then small versions of typical requests.
std::vector<NamedTree> testTrees();

/// Shapes of realistic size for timing kernels: few-shot prompts, token trees, reasoning, and trees by
/// levels. deft_make_trees writes them; the repository does not contain them.
std::vector<NamedTree> benchTrees();

} // namespace deft::test
