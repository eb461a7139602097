#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"

#include <string>

namespace deft::codegen::cuda {

/// Which attention of a spec that selects (specs/LANGUAGE.md, K1); others have the full one alone.
enum class Layer {
  Full,
  Selecting, ///< the full one, which also gives what tokens are worth
  Sparse,    ///< over lists of tokens; of the sm80 family, on every GPU
  United,    ///< the sparse one of queries whose lists are read as one
};

/// Name of a kernel's one `extern "C"` entry: deft_<variant>_<phase>, deft_<variant>_merge; where layers
/// differ, deft_<variant>_<phase>_selecting, deft_<variant>_sparse and deft_<variant>_united.
std::string attendEntry(const VariantSource &source, const config::PhaseConfig &phase,
                        Layer layer = Layer::Full);
std::string mergeEntry(const VariantSource &source);
/// deft_<variant>_queries: of those with a hook of queries.
std::string queriesEntry(const VariantSource &source);

/// The whole translation unit of one kernel. Deterministic: the text is a key of the cubin cache and
/// a golden file. The config must be legal (see compiler/kernels/Legality.h).
/// `order` is the config's.
std::string instantiateAttend(const VariantSource &source, const config::PhaseConfig &phase,
                              config::Order order = config::Order::FromRoot,
                              kernels::Families families = kernels::families(), Layer layer = Layer::Full);
std::string instantiateMerge(const VariantSource &source);
std::string instantiateQueries(const VariantSource &source);

struct KernelText {
  std::string entry;
  std::string text;
};
/// A kernel by its name: a phase, empty: the first, or `merge` or `queries`, which need no config; of a
/// variant that selects, <phase>_selecting, `select` or `sparse`, and `unite` or `united`, too.
support::Result<KernelText> instantiateNamed(const VariantSource &source,
                                             const support::Result<config::Config> &config,
                                             const target::Target &target, const std::string &name);

} // namespace deft::codegen::cuda
