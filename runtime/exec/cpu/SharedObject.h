#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/cpu/CpuKernel.h"

#include <string>
#include <string_view>

namespace deft::exec {

/// What this processor runs: 4 (x86-64-v4), 3 (x86-64-v3), or 0 for less and for other architectures.
int hostIsaLevel();

/// Loads a variant's kernel out of a package's shared object; `package` names it in messages. The code never
/// touches a named file. Fails on bytes that are no whole shared object, on a missing variant, and on a
/// kernel of another version, of another make than the variant, or for a processor that has more than this
/// one. The object is native code: it is trusted like a program.
support::Result<CpuKernel> loadCpuKernel(std::string_view sharedObject, const spec::Variant &variant,
                                         const std::string &package);

} // namespace deft::exec
