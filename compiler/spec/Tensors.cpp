#include "compiler/spec/Tensors.h"

#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"

#include <utility>

namespace deft::spec {

bool Tensors::areAlike() const { return *this == Tensors{k, k, k, {out.dtype, k.dim}}; }

std::optional<std::string> faultOf(const Tensors &tensors) {
  const auto number = [](int value) { return std::to_string(value); };
  for (const auto &[name, tensor] : {std::pair("q", &tensors.q), std::pair("k", &tensors.k),
                                     std::pair("v", &tensors.v), std::pair("out", &tensors.out)})
    if (tensor->dim < kHeadDimStep || tensor->dim % kHeadDimStep != 0)
      return std::string("the dim of ") + name + " is " + number(tensor->dim) +
             ", it must be a positive multiple of " + number(kHeadDimStep);
  for (const auto &[name, tensor] : {std::pair("k", &tensors.k), std::pair("v", &tensors.v)})
    if (tensor->elementBytes() == 1 && tensor->dim % kByteHeadDimStep != 0)
      return std::string("the dim of ") + name + " is " + number(tensor->dim) + ", as " +
             toString(tensor->dtype) + " it must be a multiple of " + number(kByteHeadDimStep);
  for (const auto &[name, tensor] : {std::pair("q", &tensors.q), std::pair("out", &tensors.out)})
    if (tensor->elementBytes() != 2)
      return std::string(name) + " is " + toString(tensor->dtype) + ", which is for caches";
  if (tensors.q.dim != tensors.k.dim)
    return "q has dim " + number(tensors.q.dim) + " and k " + number(tensors.k.dim) +
           ", their product is over one";
  if (tensors.v.dim != tensors.out.dim)
    return "v has dim " + number(tensors.v.dim) + " and out " + number(tensors.out.dim) +
           ", which is a sum of it";
  if (tensors.valueInKey && tensors.v.dtype != tensors.k.dtype)
    return "v is in k's memory and of another dtype";
  if (tensors.valueInKey && tensors.v.dim > tensors.k.dim)
    return "v is in k's memory and has dim " + number(tensors.v.dim) + ", more than k's " +
           number(tensors.k.dim);
  if (tensors.byteProducts && (tensors.k.dtype != kByteProducts || tensors.v.dtype != kByteProducts))
    return std::string("products are of ") + toString(kByteProducts) + ", k of " + toString(tensors.k.dtype) +
           " and v of " + toString(tensors.v.dtype);
  if (tensors.byteProducts && tensors.valueInKey)
    return std::string("products are of ") + toString(kByteProducts) + ", and v is in k's memory";
  if (!tensors.hasScales())
    return tensors.scaleColumns == 0 ? std::nullopt
                                     : std::optional("a scale is for " + number(tensors.scaleColumns) +
                                                     " columns of v, it must be for 1 at least");
  if (!tensors.valueInKey || tensors.k.elementBytes() != 1)
    return "only latent caches of 8-bit floats have scales";
  // So that all parts of a row begin at multiples of 16 bytes.
  if (tensors.scaleColumns % kLatentStep != 0 || tensors.v.dim % (kScaleStep * tensors.scaleColumns) != 0)
    return "a scale is for " + number(tensors.scaleColumns) + " columns of v, which has " +
           number(tensors.v.dim) + ": it must be for a multiple of " + number(kLatentStep) +
           " columns, and their number a multiple of " + number(kScaleStep);
  return std::nullopt;
}

std::string dimText(const Tensors &tensors) {
  const std::string k = std::to_string(tensors.k.dim), v = std::to_string(tensors.v.dim);
  if (tensors.valueInKey)
    return k + " (v " + v + ", in k)";
  return k == v ? k : k + " (v " + v + ")";
}

std::string dtypeText(const Tensors &tensors) {
  const std::string q = toString(tensors.q.dtype), k = toString(tensors.k.dtype),
                    v = toString(tensors.v.dtype);
  if (tensors.hasScales())
    return q + " (k " + k + ", v " + v + ", a scale for " + std::to_string(tensors.scaleColumns) + ")";
  if (tensors.byteProducts)
    return q + " (k " + k + ", v " + v + ", products " + toString(kByteProducts) + ")";
  return q == k && k == v ? q : q + " (k " + k + ", v " + v + ")";
}

} // namespace deft::spec
