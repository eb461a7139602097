#include "compiler/package/Package.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/package/Container.h"
#include "compiler/package/VariantSourceJson.h"
#include "compiler/spec/Limits.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/JsonFields.h"
#include "templates/deft/abi.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace deft::package {
namespace {

using nlohmann::json;
using support::array;
using support::Error;
using support::ErrorCode;
using support::integer;
using support::require;
using support::Result;
using support::text;

constexpr const char *kManifest = "manifest.json";

/// Collects sections while the manifest that names them is made.
class Writer {
public:
  /// Gives the section's name: `name`, and a number where other bytes have it. Kernels of an architecture's
  /// configs are named alike.
  std::string add(const std::string &name, std::string bytes) {
    std::string unique = name;
    for (int number = 2; const Section *taken = find(unique); ++number) {
      if (taken->bytes == bytes)
        return unique;
      unique = name + "." + std::to_string(number);
    }
    sections_.push_back({unique, std::move(bytes)});
    return unique;
  }
  std::string finish(const json &manifest) {
    sections_.insert(sections_.begin(), {kManifest, manifest.dump(2) + "\n"});
    return writeContainer(sections_);
  }

private:
  const Section *find(std::string_view name) const {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section &section) { return section.name == name; });
    return found == sections_.end() ? nullptr : &*found;
  }

  std::vector<Section> sections_;
};

json kernelJson(const Kernel &kernel, const std::string &folder, Writer &writer) {
  return {{"entry", kernel.entry},
          {"cubin", writer.add(folder + "/" + kernel.entry + ".cubin", kernel.cubin)},
          {"threads", kernel.threads},
          {"smem_bytes", kernel.smemBytes},
          {"registers", kernel.resources.registers},
          {"stack_bytes", kernel.resources.stackBytes},
          {"spill_store_bytes", kernel.resources.spillStoreBytes},
          {"spill_load_bytes", kernel.resources.spillLoadBytes},
          {"static_shared_bytes", kernel.resources.staticSharedBytes}};
}

/// The shape of the one phase as a config's, which is how phases are written.
json phaseJson(const config::PhaseConfig &phase) {
  config::Config config;
  config.phases = {phase};
  return config::toJson(config);
}

json setJson(const KernelSet &set, const std::string &folder, Writer &writer) {
  const auto kernelsJson = [&](const std::vector<Kernel> &kernels) {
    json array = json::array();
    for (const Kernel &kernel : kernels)
      array.push_back(kernelJson(kernel, folder, writer));
    return array;
  };
  json object = {{"arch", set.arch},
                 {"abi", abi::kVersion},
                 {"config", config::toJson(set.config)},
                 {"attend", kernelsJson(set.attend)},
                 {"merge", kernelJson(set.merge, folder, writer)}};
  if (set.query)
    object["query"] = kernelJson(*set.query, folder, writer);
  if (const auto &selecting = set.selecting) {
    json &own = object["selecting"] = {{"sparse", kernelJson(selecting->sparse, folder, writer)},
                                       {"sparse_config", phaseJson(selecting->sparsePhase)}};
    if (selecting->select) {
      own["attend"] = kernelsJson(selecting->attend);
      own["select"] = kernelJson(*selecting->select, folder, writer);
      own["blocks_of_list"] = selecting->blocksOfList;
      if (selecting->cachedKeys > 0)
        own["cached_keys"] = selecting->cachedKeys;
    }
    if (const auto &uniting = selecting->uniting)
      own["uniting"] = {{"unite", kernelJson(uniting->unite, folder, writer)},
                        {"blocks_of_list", uniting->blocksOfList},
                        {"united", kernelJson(uniting->attend, folder, writer)},
                        {"united_config", phaseJson(uniting->phase)}};
  }
  return object;
}

/// The other direction. Whatever is missing or of a wrong type arrives as a WrongField that names it;
/// readPackage makes it an error.
class Reader {
public:
  explicit Reader(std::vector<Section> sections) : sections_(std::move(sections)) {}

  Package package() {
    const json manifest = document(kManifest);
    Package package;
    package.deftcVersion = text(manifest, "deftc_version");
    package.nvrtcVersion = text(manifest, "nvrtc_version");
    for (const json &file : array(manifest, "spec_files", spec::kMaxFiles))
      package.specFiles.push_back({text(file, "name"), section(text(file, "section"))});
    for (const json &object : array(manifest, "variants", spec::kMaxAttentions))
      package.variants.push_back(variant(object));
    constexpr int kMostObjects = 16, kMostLevel = 9;
    for (const json &object : array(manifest, "cpu", kMostObjects))
      package.cpu.push_back({integer(object, "isa_level", 1, kMostLevel), section(text(object, "section"))});
    return package;
  }

private:
  const std::string &section(const std::string &name) const {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section &section) { return section.name == name; });
    require(found != sections_.end(), "section `" + name + "` is missing");
    return found->bytes;
  }
  json document(const std::string &name) const {
    return support::parseDocument(section(name), "section `" + name + "`");
  }

  template <class T> static T take(Result<T> result) {
    if (!result)
      throw support::WrongField(result.error().message);
    return std::move(result).value();
  }

  Kernel kernel(const json &object) const {
    constexpr int kMostThreads = 1024, kMost = 1 << 30;
    Kernel kernel;
    kernel.entry = text(object, "entry");
    kernel.cubin = section(text(object, "cubin"));
    kernel.threads = integer(object, "threads", 1, kMostThreads);
    kernel.smemBytes = integer(object, "smem_bytes", 0, kMost);
    kernel.resources = {kernel.entry,
                        integer(object, "registers", 0, kMost),
                        integer(object, "stack_bytes", 0, kMost),
                        integer(object, "spill_store_bytes", 0, kMost),
                        integer(object, "spill_load_bytes", 0, kMost),
                        integer(object, "static_shared_bytes", 0, kMost)};
    kernel.origin = KernelOrigin::Package;
    return kernel;
  }

  config::Config configOf(const json &object, const char *key) const {
    return take(config::configFromJson(support::member(object, key), config::DeviceKind::Gpu));
  }

  /// One a phase.
  std::vector<Kernel> attendKernels(const json &object, const config::Config &config) const {
    std::vector<Kernel> kernels;
    for (const json &attend : array(object, "attend", spec::kMaxPhases))
      kernels.push_back(kernel(attend));
    require(kernels.size() == config.phases.size(), "kernels and phases differ in number");
    return kernels;
  }

  SelectingKernels selectingKernels(const json &object, const config::Config &config) const {
    constexpr int kMostBlocks = 8;
    SelectingKernels kernels;
    if (object.contains("select")) {
      kernels.attend = attendKernels(object, config);
      kernels.select = kernel(object.at("select"));
      kernels.blocksOfList = integer(object, "blocks_of_list", 1, kMostBlocks);
      if (object.contains("cached_keys")) // as older packages do not
        kernels.cachedKeys = integer(object, "cached_keys", 0, kernels.select->smemBytes / 4);
    }
    kernels.sparse = kernel(support::member(object, "sparse"));
    kernels.sparsePhase = phaseOf(object, "sparse_config");
    if (object.contains("uniting")) { // packages from before there were unions have none
      const json &uniting = object.at("uniting");
      const bool saysBlocks = uniting.contains("blocks_of_list"); // as the first of them did not
      kernels.uniting = {kernel(support::member(uniting, "unite")),
                         saysBlocks ? integer(uniting, "blocks_of_list", 1, kMostBlocks) : 1,
                         kernel(support::member(uniting, "united")), phaseOf(uniting, "united_config")};
    }
    return kernels;
  }

  config::PhaseConfig phaseOf(const json &object, const char *key) const {
    const config::Config config = configOf(object, key);
    require(config.phases.size() == 1, "`" + std::string(key) + "` is not of one phase");
    return config.phases.front();
  }

  KernelSet kernelSet(const json &object) const {
    KernelSet set;
    set.arch = text(object, "arch");
    set.config = configOf(object, "config");
    set.attend = attendKernels(object, set.config);
    if (object.contains("query"))
      set.query = kernel(object.at("query"));
    set.merge = kernel(support::member(object, "merge"));
    if (object.contains("selecting"))
      set.selecting = selectingKernels(object["selecting"], set.config);
    return set;
  }

  PackagedVariant variant(const json &object) const {
    PackagedVariant variant;
    variant.source = take(variantSourceFromJson(document(text(object, "source"))));
    constexpr int kMostSets = 1024;
    for (const json &set : array(object, "kernels", kMostSets)) {
      constexpr int kFirstAbi = 1; // which was not written down
      const int abi =
          set.contains("abi") ? integer(set, "abi", 0, std::numeric_limits<int>::max()) : kFirstAbi;
      if (abi == abi::kVersion) // others are compiled again where they are wanted
        variant.kernels.push_back(kernelSet(set));
      require(variant.kernels.empty() || !variant.kernels.back().selecting ||
                  variant.kernels.back().selecting->select.has_value() != variant.source.listsAreGiven,
              "the kernels of `" + variant.source.name + "` and its lists do not belong together");
      require(variant.kernels.empty() || variant.kernels.back().query.has_value() == variant.source.has.query,
              "the kernels of `" + variant.source.name + "` and its hooks do not belong together");
    }
    return variant;
  }

  std::vector<Section> sections_;
};

} // namespace

const PackagedVariant *Package::find(std::string_view name) const {
  const auto found = std::find_if(variants.begin(), variants.end(), [&](const PackagedVariant &variant) {
    return variant.source.name == name;
  });
  return found == variants.end() ? nullptr : &*found;
}

std::string writePackage(const Package &package) {
  Writer writer;
  json manifest{{"deftc_version", package.deftcVersion},
                {"nvrtc_version", package.nvrtcVersion},
                {"spec_files", json::array()},
                {"variants", json::array()},
                {"cpu", json::array()}};
  for (std::size_t i = 0; i < package.specFiles.size(); ++i) {
    // Numbered: the names are the user's, and two may be alike.
    const SpecFile &file = package.specFiles[i];
    manifest["spec_files"].push_back(
        {{"name", file.name}, {"section", writer.add("spec/" + std::to_string(i) + ".deft", file.text)}});
  }
  for (const PackagedVariant &variant : package.variants) {
    const std::string folder = "variants/" + variant.source.name;
    json object{{"name", variant.source.name},
                {"source", writer.add(folder + "/source.json", toJson(variant.source).dump(2) + "\n")},
                {"kernels", json::array()}};
    for (const KernelSet &set : variant.kernels)
      object["kernels"].push_back(setJson(set, folder + "/" + set.arch, writer));
    manifest["variants"].push_back(std::move(object));
  }
  for (const CpuObject &object : package.cpu) {
    const std::string name = "cpu/x86-64-v" + std::to_string(object.isaLevel) + ".so";
    manifest["cpu"].push_back(
        {{"isa_level", object.isaLevel}, {"section", writer.add(name, object.sharedObject)}});
  }
  return writer.finish(manifest);
}

Error malformed(const std::string &path, const std::string &what) {
  return {ErrorCode::Diagnostics, "package `" + path + "` is malformed: " + what,
          "build it again with `deftc build`"};
}

Result<Package> readPackage(std::string_view bytes, const std::string &path) {
  Result<std::vector<Section>> sections = readContainer(bytes, path);
  if (!sections)
    return std::move(sections).error();
  try {
    return Reader(std::move(sections).value()).package();
  } catch (const support::WrongField &wrong) {
    return malformed(path, wrong.what());
  }
}

Result<Package> openPackage(const std::string &path) {
  Result<std::string> bytes = support::readFile(path);
  if (!bytes)
    return std::move(bytes).error();
  return readPackage(*bytes, path);
}

} // namespace deft::package
