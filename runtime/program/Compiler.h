#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/program/LoadedSpec.h"

/// What the runtime and the commands ask of the MLIR half. Two files define it: Compiler.cpp by
/// compiler/driver, and CompilerLeftOut.cpp, in a build without the compiler, by an Environment error that
/// says so.
namespace deft::program {

support::Result<codegen::cuda::VariantSource> variantSource(const LoadedSpec &spec,
                                                            const spec::Variant &variant);

/// The dialect after the passes.
support::Result<std::string> irText(const LoadedSpec &spec, const spec::Variant &variant);

/// Native code for this machine.
support::Result<exec::CpuKernel> jitCpuKernel(const LoadedSpec &spec, const spec::Variant &variant);

/// One shared object for x86-64-v3 or v4 with the kernels of these variants.
support::Result<std::string>
cpuSharedObject(const LoadedSpec &spec, const std::vector<const spec::Variant *> &variants, int isaLevel);

} // namespace deft::program
