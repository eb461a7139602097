#include "runtime/program/Compiler.h"

#include "compiler/driver/Compilation.h"
#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"

namespace deft::program {

using support::Result;

Result<codegen::cuda::VariantSource> variantSource(const LoadedSpec &spec, const spec::Variant &variant) {
  auto compilation = driver::Compilation::create(variant, spec.sources);
  if (!compilation)
    return std::move(compilation).error();
  return compilation->cudaVariantSource();
}

Result<std::string> irText(const LoadedSpec &spec, const spec::Variant &variant) {
  const auto compilation = driver::Compilation::create(variant, spec.sources);
  if (!compilation)
    return compilation.error();
  return compilation->irText(driver::Compilation::Stage::Optimized);
}

Result<exec::CpuKernel> jitCpuKernel(const LoadedSpec &spec, const spec::Variant &variant) {
  const support::NvtxRange range("deft compile");
  const support::LoggedSpan compiling;
  const auto compilation = driver::Compilation::create(variant, spec.sources);
  if (!compilation)
    return compilation.error();
  auto kernel = compilation->jitCpuKernel();
  compiling.end(support::LogKind::Compile, [&] {
    return variant.called() + " for this processor" + (kernel ? "" : ": " + kernel.error().message);
  });
  return kernel;
}

Result<std::string> cpuSharedObject(const LoadedSpec &spec,
                                    const std::vector<const spec::Variant *> &variants, int isaLevel) {
  std::vector<std::string> objects;
  for (const spec::Variant *variant : variants) {
    auto compilation = driver::Compilation::create(*variant, spec.sources);
    if (!compilation)
      return std::move(compilation).error();
    auto object = compilation->cpuObject(isaLevel);
    if (!object)
      return std::move(object).error();
    objects.push_back(std::move(*object));
  }
  return driver::Compilation::linkCpuObjects(objects);
}

} // namespace deft::program
