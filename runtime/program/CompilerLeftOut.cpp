#include "runtime/program/Compiler.h"

namespace deft::program {
namespace {

support::Error leftOut(const LoadedSpec &spec) {
  return {support::ErrorCode::Environment,
          "this build of deftc is without the compiler and cannot compile `" + spec.path + "`",
          "run a package that `deftc build` made on another machine"};
}

} // namespace

support::Result<codegen::cuda::VariantSource> variantSource(const LoadedSpec &spec, const spec::Variant &) {
  return leftOut(spec);
}

support::Result<std::string> irText(const LoadedSpec &spec, const spec::Variant &) { return leftOut(spec); }

support::Result<exec::CpuKernel> jitCpuKernel(const LoadedSpec &spec, const spec::Variant &) {
  return leftOut(spec);
}

support::Result<std::string> cpuSharedObject(const LoadedSpec &spec,
                                             const std::vector<const spec::Variant *> &, int) {
  return leftOut(spec);
}

} // namespace deft::program
