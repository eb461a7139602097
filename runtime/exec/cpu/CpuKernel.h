#pragma once

#include "templates/deft/cpu_abi.h"

#include <memory>

namespace deft::exec {

/// A callable CPU kernel: the table, and behind it whatever keeps the code alive (a JIT session, a loaded
/// shared object). Copies share it; the last one unloads the code. Null is no kernel.
using CpuKernel = std::shared_ptr<const abi::CpuKernel>;

} // namespace deft::exec
