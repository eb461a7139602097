#include "runtime/exec/Inputs.h"

namespace deft::exec {

std::vector<abi::ParamSlot> Inputs::paramSlots(const spec::Variant &variant) const {
  std::vector<abi::ParamSlot> slots(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    const spec::Param &param = variant.params[i];
    const ParamValue &value = params[i];
    const bool isScalar = param.shape == spec::Param::Shape::Scalar;
    slots[i].bits = 0;
    if (param.type == spec::ScalarType::F32 && isScalar)
      slots[i].f32 = value.f32[0];
    else if (param.type == spec::ScalarType::F32)
      slots[i].f32Array = value.f32.data();
    else if (isScalar)
      slots[i].i32 = value.i32[0];
    else
      slots[i].i32Array = value.i32.data();
  }
  return slots;
}

} // namespace deft::exec
