#include "compiler/driver/Compilation.h"
#include "tools/deftc/emit/Emitters.h"

#include <CLI/CLI.hpp>

namespace deft::cli {
namespace {

using driver::Compilation;
using support::Result;

struct CompilerOptions {
  std::string stage = "optimized";
  std::string pass; ///< after which; empty: the stage decides
  std::string cpu = "host";

  int isaLevel() const { return cpu == "host" ? 0 : cpu.back() - '0'; }
};

/// What `make` gives of a compilation.
template <typename F> auto of(F make) {
  return
      [make = std::move(make)](const LoadedSpec &spec, const spec::Variant &variant) -> Result<std::string> {
        const Result<Compilation> compilation = Compilation::create(variant, spec.sources);
        if (!compilation)
          return compilation.error();
        return make(*compilation);
      };
}

} // namespace

void addCompilerEmitters(CLI::App &emit, EmitterTable &table) {
  auto options = std::make_shared<CompilerOptions>();
  CLI::Option *stage = emit.add_option("--stage", options->stage, "For ir: before or after the passes")
                           ->check(CLI::IsMember({"imported", "optimized"}))
                           ->capture_default_str();
  CLI::Option *pass =
      emit.add_option("--print-after", options->pass, "For ir: after this pass; a wrong name lists them")
          ->excludes(stage);
  CLI::Option *cpu =
      emit.add_option("--cpu", options->cpu,
                      "For llvm and asm: the instruction set, x86-64-v3, x86-64-v4 or this machine's")
          ->check(CLI::IsMember({"host", "v3", "v4"}))
          ->capture_default_str();
  table.options.insert(table.options.end(), {{stage, {"ir"}}, {pass, {"ir"}}, {cpu, {"llvm", "asm"}}});
  table.add({"ir", "the deft dialect", of([options](const Compilation &compilation) -> Result<std::string> {
               if (!options->pass.empty())
                 return compilation.irAfter(options->pass);
               return compilation.irText(options->stage == "imported" ? Compilation::Stage::Imported
                                                                      : Compilation::Stage::Optimized);
             })});
  table.add({"llvm", "the CPU kernel as optimised LLVM IR", of([options](const Compilation &compilation) {
               return compilation.llvmText(options->isaLevel());
             })});
  table.add({"asm", "the CPU kernel as assembly", of([options](const Compilation &compilation) {
               return compilation.cpuAsm(options->isaLevel());
             })});
}

} // namespace deft::cli
