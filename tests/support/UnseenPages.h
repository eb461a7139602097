#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Reach.h"
#include "runtime/tree/KvTree.h"

#include <set>

namespace deft::test {

/// Groups of `step` locations in which some query may see a token.
std::set<int> visibleGroups(const tree::KvTree &tree, const plan::Reach &reach, int step);

/// Frees the pages without visible tokens, as hosts may: their values become NaN, and their page table
/// entries -1.
void freeUnseenPages(const spec::Variant &variant, const tree::KvTree &tree, exec::Inputs &inputs);

} // namespace deft::test
