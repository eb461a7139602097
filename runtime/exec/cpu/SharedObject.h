#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/cpu/CpuKernel.h"

#include <string>
#include <string_view>

namespace deft::exec {

/// The level of this processor: 4 (x86-64-v4), 3 (x86-64-v3), or 0 for less and other architectures.
int hostIsaLevel();

/// Loads a variant's kernel from a package's shared object, without a named file; `package` names the object
/// in messages. Fails if the bytes are not a complete shared object, if the variant is missing, or if its
/// kernel has another version, does not match the variant, or needs a better processor. The object is native
/// code: trust it like a program.
support::Result<CpuKernel> loadCpuKernel(std::string_view sharedObject, const spec::Variant &variant,
                                         const std::string &package);

} // namespace deft::exec
