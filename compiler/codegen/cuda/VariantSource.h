#pragma once

#include "compiler/kernels/KernelShape.h"

#include <string>
#include <vector>

/// What crosses from MLIR to the text side: with a VariantSource and a config, a kernel's source is
/// plain text work, so a build without LLVM can still make kernels for configs it has never seen.
namespace deft::codegen::cuda {

struct VariantSource {
  std::string name; ///< of the attention; an identifier
  int queryHeads = 0;
  int kvHeads = 0;
  spec::Tensors tensors;
  bool withLse = false;
  int pageSize = 0; ///< 0: contiguous
  spec::Normalize normalize = spec::Normalize::Softmax;
  bool hasSink = false;            ///< which the merge asks hooks for
  bool hasOutput = false;          ///< a hook of the output, likewise
  bool hasQuery = false;           ///< a hook of q, which a kernel of its own applies before the others
  bool hasKey = false;             ///< a hook of K, which attend kernels apply to each tile
  bool hasValueFactor = false;     ///< a factor of each token's V, likewise
  int worthGroups = 0;             ///< of a query's heads, and its lists, where the spec selects
  int lists = 0;                   ///< as many as groups, or one of all
  std::vector<std::string> params; ///< names, in the order of their slots
  int tokenParams = 0;             ///< of these, arrays over tokens

  /// CUDA text of `struct Params` and `struct Variant`, complete and with a final newline; it is
  /// pasted into an unnamed namespace. May hold `#line` directives back to the spec, with the spec's
  /// file name alone: the text is a cache key, and a folder must not change it.
  std::string hooks;

  int ratio() const { return queryHeads / kvHeads; }
  bool selects() const { return lists > 0; }
  /// Whether the lists of several queries may be read as one: all rows of a KV head read one list then.
  bool unites() const { return selects() && lists <= kvHeads; }
  kernels::KernelShape shape() const {
    return {queryHeads, kvHeads, tensors, hasKey, tokenParams, hasValueFactor};
  }
};

} // namespace deft::codegen::cuda
