#pragma once

#include "compiler/spec/Variant.h"
#include "templates/deft/cpu_abi.h"

#include <memory>
#include <string>

namespace deft::exec {

/// A callable CPU kernel: the table, and an owner that keeps the code alive (a JIT session or a loaded shared
/// object). Copies share the code; the last one unloads it. Null means no kernel.
using CpuKernel = std::shared_ptr<const abi::CpuKernel>;

/// The first fact in which a kernel and a variant differ, "its dim of v is 64, not 128"; empty: they are of
/// one make. A kernel of another one would read and write out of bounds.
std::string differenceOf(const abi::CpuKernel &kernel, const spec::Variant &variant);

} // namespace deft::exec
