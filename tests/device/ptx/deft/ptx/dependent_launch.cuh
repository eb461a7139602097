#pragma once

namespace deft::ptx {

/// Blocks run one after the other here, and so do kernels.
inline void allowDependents() {}
inline void awaitKernelBefore() {}

} // namespace deft::ptx
