#pragma once

#include "compiler/kernels/Family.h"
#include "compiler/spec/Variant.h"

#include <string>
#include <vector>

/// What crosses from MLIR to the text side: with a VariantSource and a config, a kernel's source is
/// plain text work, so a build without LLVM can still make kernels for configs it has never seen.
namespace deft::package {

struct VariantSource {
  std::string name; ///< of the attention; an identifier
  int queryHeads = 0;
  int kvHeads = 0;
  int headDim = 0;
  spec::DType dtype = spec::DType::BF16;
  spec::DType outputDtype = spec::DType::BF16;
  bool withLse = false;
  int pageSize = 0; ///< 0: contiguous
  spec::Normalize normalize = spec::Normalize::Softmax;
  std::vector<std::string> params; ///< names, in the order of their slots

  /// CUDA text of `struct Params` and `struct Variant`, complete and with a final newline; it is
  /// pasted into an unnamed namespace. May hold `#line` directives back to the spec, with the spec's
  /// file name alone: the text is a cache key, and a folder must not change it.
  std::string hooks;

  int ratio() const { return queryHeads / kvHeads; }
};

/// Name of a kernel's one `extern "C"` entry: deft_<variant>_<phase>, deft_<variant>_merge.
std::string attendEntry(const VariantSource &source, const config::PhaseConfig &phase);
std::string mergeEntry(const VariantSource &source);

/// The whole translation unit of one kernel. Deterministic: the text is a key of the cubin cache and
/// a golden file. The config must be legal (see compiler/kernels/Legality.h).
/// `order` is the config's.
std::string instantiateAttend(const VariantSource &source, const config::PhaseConfig &phase,
                              config::Order order = config::Order::FromRoot,
                              kernels::Families families = kernels::families());
std::string instantiateMerge(const VariantSource &source);

} // namespace deft::package
