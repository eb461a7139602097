#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"

#include <string>

namespace deft::codegen::cuda {

/// The attention of a layer of a spec that selects (specs/LANGUAGE.md, K1). Other specs have only Full.
enum class Layer {
  Full,
  Selecting, ///< the full attention, which also computes the worth of tokens
  Sparse,    ///< over lists of tokens; family sm80, on every GPU
  United,    ///< the sparse attention of queries whose lists are read as one
};

/// The name of a kernel's only `extern "C"` entry: deft_<variant>_<phase>, deft_<variant>_merge; for other
/// layers deft_<variant>_<phase>_selecting, deft_<variant>_sparse and deft_<variant>_united.
std::string attendEntry(const VariantSource &source, const config::PhaseConfig &phase,
                        Layer layer = Layer::Full);
std::string mergeEntry(const VariantSource &source);
/// deft_<variant>_queries, for variants with the hook `query`.
std::string queriesEntry(const VariantSource &source);

/// The complete translation unit of one kernel. Deterministic: the text is a key of the cubin cache, and
/// tests compare it with golden files. The config must be legal (compiler/kernels/Legality.h).
/// `order` must be the config's.
std::string instantiateAttend(const VariantSource &source, const config::PhaseConfig &phase,
                              config::Order order = config::Order::FromRoot,
                              kernels::Families families = kernels::families(), Layer layer = Layer::Full);
std::string instantiateMerge(const VariantSource &source);
std::string instantiateQueries(const VariantSource &source);

struct KernelText {
  std::string entry;
  std::string text;
};
/// A kernel by name: a phase (empty: the first), or `merge` or `queries`, which need no config. A variant
/// that selects also has <phase>_selecting, `select`, `sparse`, `unite` and `united`.
support::Result<KernelText> instantiateNamed(const VariantSource &source,
                                             const support::Result<config::Config> &config,
                                             const target::Target &target, const std::string &name);

} // namespace deft::codegen::cuda
