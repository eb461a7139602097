#pragma once

#include "runtime/tree/KvTree.h"

#include <string>
#include <utility>
#include <vector>

namespace deft::test {

using NamedTree = std::pair<std::string, tree::KvTree>;

/// Twenty trees of different shapes, small enough for a scalar oracle; tests/support/trees holds them as
/// files. The edge list first, then small copies of what requests look like.
std::vector<NamedTree> testTrees();

/// Shapes of real size, by which kernels are timed: few-shot prompts, token trees, reasoning, and trees
/// by levels. Not kept as files; deft_make_trees writes them.
std::vector<NamedTree> benchTrees();

} // namespace deft::test
