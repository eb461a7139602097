#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/program/LoadedSpec.h"

/// The interface of the runtime and the commands to the MLIR half. Two files implement it: Compiler.cpp
/// with compiler/driver, and CompilerLeftOut.cpp, for a build without the compiler, with an Environment
/// error.
namespace deft::program {

support::Result<codegen::cuda::VariantSource> variantSource(const LoadedSpec &spec,
                                                            const spec::Variant &variant);

/// The dialect after all passes.
support::Result<std::string> irText(const LoadedSpec &spec, const spec::Variant &variant);

/// Native code for this machine.
support::Result<exec::CpuKernel> jitCpuKernel(const LoadedSpec &spec, const spec::Variant &variant);

/// One shared object for x86-64-v3 or v4 with the kernels of these variants.
support::Result<std::string>
cpuSharedObject(const LoadedSpec &spec, const std::vector<const spec::Variant *> &variants, int isaLevel);

} // namespace deft::program
