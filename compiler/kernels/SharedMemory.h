#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// Dynamic shared memory of one block of a GPU's attend kernel, in bytes. Every generated kernel asserts that
/// its header computes the same number.
inline int smemBytes(const KernelShape &shape, const PhaseConfig &phase, Families all = families()) {
  return familyOf(phase, all).smemBytes(shape, phase);
}

/// Shared memory of each block if two share a multiprocessor.
inline int halfSmem(const target::Target &target) { return target.smemPerSm / 2 - target.smemReserved; }

} // namespace deft::kernels
