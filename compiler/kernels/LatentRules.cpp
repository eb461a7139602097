#include "compiler/kernels/LatentRules.h"

#include "compiler/kernels/BlocksBeside.h"
#include "compiler/spec/Names.h"

namespace deft::kernels {

namespace {

std::string nameOf(const PhaseSite &site) { return "family " + std::string(site.family.name); }

} // namespace

bool hasLatentTensors(const PhaseSite &site) {
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = site.shape.tensors;
  return valueInKey && k.dtype == v.dtype && (k.dtype == q.dtype || k.elementBytes() == 1);
}

std::string otherThanLatentTensors(const PhaseSite &site) {
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = site.shape.tensors;
  if (!valueInKey)
    return "v has memory of its own; " + nameOf(site) + " reads it from k's";
  return std::string("q is ") + toString(q.dtype) + " and k " + toString(k.dtype) + "; " + nameOf(site) +
         " takes one dtype for both, or a k of 8-bit floats";
}

bool canMakeQueries(const PhaseSite &site) {
  return !site.shape.has.query || site.shape.tensors.k.dim <= kMostQueryDim;
}
std::string tooLongQueries(const PhaseSite &site) {
  return "there is a hook `query`, and a query has " + std::to_string(site.shape.tensors.k.dim) +
         " elements a head; GPUs make those of " + std::to_string(kMostQueryDim) + " at most";
}
std::string makeQueriesBefore(const PhaseSite &) { return "apply it before the attention, or use a CPU"; }

bool hasNoKeyHook(const PhaseSite &site) { return !site.shape.has.key; }
std::string hasKeyHook(const PhaseSite &site) {
  return "there is a hook `key`; " + nameOf(site) + " reads values from keys as they lie in memory";
}
std::string useCpu(const PhaseSite &) { return "use a CPU"; }

} // namespace deft::kernels
