#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"

namespace deft::test {

/// Frees the pages of which the mask shows no query anything, as hosts may: their values are NaN and their
/// entries of the page table -1. Gives how many.
int freeUnseenPages(const spec::Variant &variant, const tree::KvTree &tree, exec::Inputs &inputs);

} // namespace deft::test
