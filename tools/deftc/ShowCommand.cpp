#include "compiler/package/Package.h"
#include "compiler/spec/Names.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ostream>

namespace deft::cli {
namespace {

using nlohmann::ordered_json;
using package::Kernel;

std::string kernelText(const Kernel &kernel) {
  const target::KernelResources &used = kernel.resources;
  std::string text = kernel.entry + ": " + std::to_string(used.registers) + " registers, " +
                     std::to_string(kernel.threads) + " threads, " +
                     std::to_string((kernel.smemBytes + used.staticSharedBytes) / 1024) + " KiB shared, " +
                     std::to_string(kernel.cubin.size() / 1024) + " KiB";
  return used.spills() ? text + ", spills " + std::to_string(used.spillStoreBytes) + " bytes" : text;
}

ordered_json kernelJson(const Kernel &kernel) {
  return {{"entry", kernel.entry},
          {"registers", kernel.resources.registers},
          {"spill_store_bytes", kernel.resources.spillStoreBytes},
          {"spill_load_bytes", kernel.resources.spillLoadBytes},
          {"threads", kernel.threads},
          {"shared_bytes", kernel.smemBytes + kernel.resources.staticSharedBytes},
          {"cubin_bytes", kernel.cubin.size()}};
}

std::string headsText(const codegen::cuda::VariantSource &source) {
  return std::to_string(source.queryHeads) + " query heads, " + std::to_string(source.kvHeads) +
         " kv heads, head dim " + spec::dimText(source.tensors) + ", " + spec::dtypeText(source.tensors) +
         (source.pageSize > 0 ? ", pages of " + std::to_string(source.pageSize) : ", contiguous");
}

/// Those that an attention which selects has beside the full one's.
std::vector<const Kernel *> selectingKernels(const package::KernelSet &set) {
  std::vector<const Kernel *> kernels;
  if (!set.selecting)
    return kernels;
  for (const Kernel &kernel : set.selecting->attend)
    kernels.push_back(&kernel);
  if (set.selecting->select)
    kernels.push_back(&*set.selecting->select);
  kernels.push_back(&set.selecting->sparse);
  if (const auto &uniting = set.selecting->uniting) {
    kernels.push_back(&uniting->unite);
    kernels.push_back(&uniting->attend);
  }
  return kernels;
}

void print(std::ostream &out, const package::Package &package, const std::string &path) {
  out << path << ": built by deftc " << package.deftcVersion;
  if (!package.nvrtcVersion.empty())
    out << ", kernels by NVRTC " << package.nvrtcVersion;
  out << '\n';
  for (const package::SpecFile &file : package.specFiles)
    out << "  spec  " << file.name << ", " << file.text.size() << " bytes\n";
  for (const package::CpuObject &object : package.cpu)
    out << "  cpu   x86-64-v" << object.isaLevel << ", " << object.sharedObject.size() / 1024 << " KiB\n";
  for (const package::PackagedVariant &variant : package.variants) {
    out << variant.source.name << ": " << headsText(variant.source) << '\n';
    if (variant.kernels.empty())
      out << "  no GPU kernels: they are compiled on the machine that runs the package\n";
    for (const package::KernelSet &set : variant.kernels) {
      out << "  " << set.arch << ' ' << defaultName(set.config) << ": " << configText(set.config) << '\n';
      for (const Kernel &kernel : set.attend)
        out << "    " << kernelText(kernel) << '\n';
      out << "    " << kernelText(set.merge) << '\n';
      if (set.query)
        out << "    " << kernelText(*set.query) << '\n';
      for (const Kernel *kernel : selectingKernels(set))
        out << "    " << kernelText(*kernel) << '\n';
    }
  }
}

ordered_json toJson(const package::Package &package) {
  ordered_json json{{"deftc", package.deftcVersion}, {"nvrtc", package.nvrtcVersion}};
  json["specs"] = json["cpu"] = json["attentions"] = ordered_json::array();
  for (const package::SpecFile &file : package.specFiles)
    json["specs"].push_back({{"name", file.name}, {"text", file.text}});
  for (const package::CpuObject &object : package.cpu)
    json["cpu"].push_back({{"isa_level", object.isaLevel}, {"bytes", object.sharedObject.size()}});
  for (const package::PackagedVariant &variant : package.variants) {
    ordered_json sets = ordered_json::array();
    for (const package::KernelSet &set : variant.kernels) {
      ordered_json attend = ordered_json::array();
      for (const Kernel &kernel : set.attend)
        attend.push_back(kernelJson(kernel));
      sets.push_back({{"arch", set.arch},
                      {"name", defaultName(set.config)},
                      {"config", configText(set.config)},
                      {"attend", std::move(attend)},
                      {"merge", kernelJson(set.merge)}});
      if (set.query)
        sets.back()["query"] = kernelJson(*set.query);
      for (const Kernel *kernel : selectingKernels(set))
        sets.back()["selecting"].push_back(kernelJson(*kernel));
    }
    json["attentions"].push_back({{"name", variant.source.name}, {"kernels", std::move(sets)}});
  }
  return json;
}

int show(Context &context, const std::string &path, bool asJson, bool specText) {
  if (auto read = context.files.reads(path); !read)
    return reportError(context, read.error());
  const auto package = package::openPackage(path);
  if (!package)
    return reportError(context, package.error());
  if (specText)
    context.out << package->specFiles.front().text;
  else if (asJson)
    context.out << toJson(*package).dump(2) << '\n';
  else
    print(context.out, *package, path);
  return kExitOk;
}

} // namespace

void addShowCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "show", "Show a package's contents: specs, architectures, kernels and their registers");
  auto path = std::make_shared<std::string>();
  auto asJson = std::make_shared<bool>(false), specText = std::make_shared<bool>(false);
  command->add_option("PACKAGE", *path, "A file from `deftc build`")->required();
  CLI::Option *json = command->add_flag("--json", *asJson, "Print JSON");
  command->add_flag("--spec", *specText, "Print only the text of its spec")->excludes(json);
  command->footer("Example:\n  deftc show llama3.deftpkg");
  context.onRun(command,
                [&context, path, asJson, specText] { return show(context, *path, *asJson, *specText); });
}

} // namespace deft::cli
