#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/device/Device.h"
#include "templates/deft/abi.h"

namespace deft::exec {

/// Fills the maps by which kernels of the sm90 family copy tokens in bulk, for the cache that `args` names.
/// Leaves args.hasMaps 0 where the device or the cache's layout has no such copies; tokens are then copied
/// one by one. On the host only.
void fillCacheBoxes(const device::Device &device, const spec::Variant &variant, abi::AttendArgs &args);

} // namespace deft::exec
