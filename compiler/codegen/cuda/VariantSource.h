#pragma once

#include "compiler/kernels/KernelShape.h"

#include <string>
#include <vector>

/// What crosses from MLIR to the text side: with a VariantSource and a config, a kernel's source is
/// plain text work, so a build without LLVM can still make kernels for configs it has never seen.
namespace deft::codegen::cuda {

/// Its merge asks the hooks for a sink and for elements of the output; a kernel of its own applies the hook
/// of q before the others.
struct VariantSource : kernels::KernelShape {
  std::string name; ///< of the attention; an identifier
  bool withLse = false;
  int pageSize = 0; ///< 0: contiguous
  spec::Normalize normalize = spec::Normalize::Softmax;
  int worthGroups = 0;             ///< of a query's heads, and its lists, where the spec selects
  int lists = 0;                   ///< as many as groups, or one of all
  std::vector<std::string> params; ///< names, in the order of their slots

  /// CUDA text of `struct Params` and `struct Variant`, complete and with a final newline; it is
  /// pasted into an unnamed namespace. May hold `#line` directives back to the spec, with the spec's
  /// file name alone: the text is a cache key, and a folder must not change it.
  std::string hooks;

  bool selects() const { return lists > 0; } ///< or is handed lists
  /// Whether the lists of several queries may be read as one: all rows of a KV head read one list then. Of
  /// lists that a caller hands over, where a block has the rows of two queries.
  bool unites() const {
    return listsAreGiven ? tensors.valueInKey && 2 * queryHeads <= kMostRowsOfLatent
                         : selects() && lists <= kvHeads;
  }
  const kernels::KernelShape &shape() const { return *this; }
};

} // namespace deft::codegen::cuda
