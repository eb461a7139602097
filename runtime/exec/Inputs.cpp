#include "runtime/exec/Inputs.h"

namespace deft::exec {

namespace {

abi::CacheLayout layoutOf(const spec::Variant &variant, const spec::TensorType &tensor) {
  const long long dim = tensor.dim, heads = variant.kvHeads;
  if (!variant.cache.isPaged())
    return {0, heads * dim, dim};
  const long long page = variant.cache.pageSize;
  if (variant.cache.order == spec::PageOrder::Nhd)
    return {page * heads * dim, heads * dim, dim};
  return {page * heads * dim, dim, page * dim};
}

} // namespace

CacheLayouts cacheLayoutsOf(const spec::Variant &variant) {
  const abi::CacheLayout k = layoutOf(variant, variant.tensors.keyRow());
  return {k, variant.tensors.valueInKey ? k : layoutOf(variant, variant.tensors.v)};
}

abi::ParamSlot slotOf(const spec::Param &param, const ParamValue &value) {
  const bool isScalar = param.shape == spec::Param::Shape::Scalar;
  abi::ParamSlot slot;
  slot.bits = 0;
  if (param.type == spec::ScalarType::F32 && isScalar)
    slot.f32 = value.f32[0];
  else if (param.type == spec::ScalarType::F32)
    slot.f32Array = value.f32.data();
  else if (isScalar)
    slot.i32 = value.i32[0];
  else
    slot.i32Array = value.i32.data();
  return slot;
}

std::vector<abi::ParamSlot> Inputs::paramSlots(const spec::Variant &variant) const {
  std::vector<abi::ParamSlot> slots(params.size());
  for (std::size_t i = 0; i < params.size(); ++i)
    slots[i] = slotOf(variant.params[i], params[i]);
  return slots;
}

} // namespace deft::exec
