#pragma once

#include "compiler/kernels/KernelShape.h"

#include <string>
#include <vector>

/// The interface from MLIR to text: a VariantSource and a config suffice to write a kernel's source without
/// MLIR. So a build without LLVM can make kernels for new configs.
namespace deft::codegen::cuda {

/// A variant as text. Its merge uses the hooks `sink` and `output`; a separate kernel applies the hook
/// `query` before the others.
struct VariantSource : kernels::KernelShape {
  std::string name; ///< of the attention; a valid identifier
  bool withLse = false;
  int pageSize = 0; ///< 0: contiguous
  spec::Normalize normalize = spec::Normalize::Softmax;
  int worthGroups = 0;             ///< for a spec that selects: groups of a query's heads
  int lists = 0;                   ///< as many as groups, or one for all
  std::vector<std::string> params; ///< names, in the order of their slots

  /// The CUDA text of `struct Params` and `struct Variant`, complete and with a final newline; it is pasted
  /// into an unnamed namespace. It may contain `#line` directives to the spec, but only with the file's base
  /// name: the text is a cache key that must not depend on a folder.
  std::string hooks;

  bool selects() const { return lists > 0; } ///< or is handed lists
  /// Whether the lists of several queries may be read as one: all rows of a KV head read one list then. Of
  /// lists that a caller hands over, where a block has the rows of two queries.
  bool unites() const {
    return listsAreGiven ? tensors.valueInKey && 2 * queryHeads <= kMostRowsOfLatent
                         : selects() && lists <= kvHeads;
  }
  const kernels::KernelShape &shape() const { return *this; }

  /// Everything but the hooks.
  static VariantSource of(const spec::Variant &variant) {
    VariantSource source{kernels::KernelShape::of(variant),
                         variant.name,
                         variant.withLse,
                         variant.cache.pageSize,
                         variant.normalize,
                         variant.select ? variant.worthGroups() : 0,
                         variant.select ? variant.lists() : 0,
                         {},
                         {}};
    for (const spec::Param &param : variant.params)
      source.params.push_back(param.name);
    return source;
  }
};

} // namespace deft::codegen::cuda
