// usage: deft_make_package SPEC SHARED_OBJECT PACKAGE
//        deft_make_package SPEC --gpu PACKAGE
// A package of a spec and of native code that did not come out of the compiler (ScalarKernel.cpp); or of
// kernels for the tests' driver (FakeCuda.h), which looks at nothing but their names.
#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/codegen/cuda/InstantiateSelect.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/SparsePhase.h"
#include "compiler/package/Package.h"
#include "compiler/spec/CompileSpec.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/api/InvariantConfig.h"

#include <cstdio>
#include <utility>

int main(int argc, char **argv) {
  using namespace deft;
  if (argc != 4)
    return 2;
  const bool isForGpu = std::string_view(argv[2]) == "--gpu";
  const auto text = support::readFile(argv[1]);
  const auto object = isForGpu ? support::Result<std::string>("") : support::readFile(argv[2]);
  if (!text || !object)
    return 1;
  support::SourceManager sources;
  support::DiagnosticSink sink;
  const auto file = sources.add("host_program.deft", *text);
  const auto noImports = [](const std::string &, const std::string &) -> support::Result<spec::ImportedFile> {
    return support::Error{support::ErrorCode::Diagnostics, "no imports here", ""};
  };
  const auto variants = spec::compileSpec(sources, file, noImports, sink);
  if (variants.size() != 1)
    return 1;
  const spec::Variant &variant = variants[0];

  package::Package package;
  package.deftcVersion = "test";
  package.specFiles = {{"host_program.deft", *text}};
  package::PackagedVariant packaged;
  packaged.source = codegen::cuda::VariantSource::of(variant);
  const auto addKernels = [&](const target::Target &target, const config::Config &config) {
    package::KernelSet kernels{.arch = std::string(target.arch),
                               .config = config,
                               .attend = {},
                               .query = {},
                               .merge = {},
                               .selecting = {}};
    const auto kernelOf = [](std::string entry, int threads) {
      return package::Kernel{
          .entry = std::move(entry), .cubin = "for the tests' driver", .threads = threads, .resources = {}};
    };
    for (const config::PhaseConfig &phase : config.phases)
      kernels.attend.push_back(
          kernelOf(codegen::cuda::attendEntry(packaged.source, phase), 32 * phase.warps));
    kernels.merge = kernelOf(codegen::cuda::mergeEntry(packaged.source), 128);
    if (variant.select) {
      package::SelectingKernels &selecting = kernels.selecting.emplace();
      const auto sparse = kernels::sparsePhase(kernels::KernelShape::of(variant), target);
      if (!sparse)
        return false;
      if (!packaged.source.listsAreGiven) {
        for (const config::PhaseConfig &phase : config.phases)
          selecting.attend.push_back(kernelOf(
              attendEntry(packaged.source, phase, codegen::cuda::Layer::Selecting), 32 * phase.warps));
        selecting.select = kernelOf(selectEntry(packaged.source), codegen::cuda::SelectShape::kThreads);
        selecting.blocksOfList = codegen::cuda::SelectShape::of(target).blocksOfList;
      }
      selecting.sparsePhase = *sparse;
      selecting.sparse =
          kernelOf(attendEntry(packaged.source, *sparse, codegen::cuda::Layer::Sparse), 32 * sparse->warps);
      if (const auto united = kernels::unitedPhase(kernels::KernelShape::of(variant), target);
          united && packaged.source.unites())
        selecting.uniting = {
            kernelOf(uniteEntry(packaged.source), codegen::cuda::UniteShape::kThreads),
            codegen::cuda::UniteShape::of(packaged.source, target).blocksOfList,
            kernelOf(attendEntry(packaged.source, *united, codegen::cuda::Layer::United), 32 * united->warps),
            *united};
    }
    packaged.kernels.push_back(std::move(kernels));
    return true;
  };
  if (isForGpu)
    for (const char *arch : {"sm_80", "sm_90a"}) {
      const target::Target &target = *target::findTarget(arch);
      const auto config = kernels::defaultConfig(variant, &target);
      // Of any GPU, for plans that are to be invariant, whose kernels nobody can compile out of this package.
      auto plain = kernels::defaultConfigOfAnyGpu(variant);
      if (!config || !plain)
        return 1;
      config::Config invariant = *config;
      invariant.phases = std::move(plain->phases);
      if (!addKernels(target, *config) || !addKernels(target, api::withWidestPhase(std::move(invariant))))
        return 1;
    }
  else
    package.cpu = {{3, *object}};
  package.variants.push_back(packaged);
  const auto written = support::writeFileAtomically(argv[3], package::writePackage(package));
  if (!written)
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}
