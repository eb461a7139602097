#include "compiler/package/Package.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/package/Container.h"
#include "compiler/package/SpaceJson.h"
#include "compiler/package/VariantSourceJson.h"
#include "compiler/support/AtomicFile.h"
#include "templates/deft/abi.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

namespace deft::package {
namespace {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

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

/// The other direction. Whatever is missing or of a wrong type arrives as an exception with a text
/// that names it; readPackage makes it an error.
class Reader {
public:
  explicit Reader(std::vector<Section> sections) : sections_(std::move(sections)) {}

  std::string &section(const std::string &name) {
    for (Section &section : sections_)
      if (section.name == name)
        return section.bytes;
    throw std::runtime_error("section `" + name + "` is missing");
  }
  json jsonSection(const std::string &name) { return json::parse(section(name)); }

  template <class T> static T take(Result<T> result) {
    if (!result)
      throw std::runtime_error(result.error().message);
    return std::move(result).value();
  }

  Kernel kernel(const json &object) {
    Kernel kernel;
    kernel.entry = object.at("entry").get<std::string>();
    kernel.cubin = section(object.at("cubin").get<std::string>());
    kernel.threads = object.at("threads").get<int>();
    kernel.smemBytes = object.at("smem_bytes").get<int>();
    kernel.resources = {kernel.entry,
                        object.at("registers").get<int>(),
                        object.at("stack_bytes").get<int>(),
                        object.at("spill_store_bytes").get<int>(),
                        object.at("spill_load_bytes").get<int>(),
                        object.at("static_shared_bytes").get<int>()};
    kernel.origin = KernelOrigin::Package;
    return kernel;
  }

  KernelSet kernelSet(const json &object) {
    KernelSet set;
    set.arch = object.at("arch").get<std::string>();
    set.config = take(config::configFromJson(object.at("config")));
    for (const json &attend : object.at("attend"))
      set.attend.push_back(kernel(attend));
    set.merge = kernel(object.at("merge"));
    if (set.attend.size() != set.config.phases.size())
      throw std::runtime_error("kernels and phases differ in number");
    return set;
  }

  PackagedVariant variant(const json &object) {
    PackagedVariant variant;
    variant.source = take(variantSourceFromJson(jsonSection(object.at("source").get<std::string>())));
    if (object.contains("space"))
      variant.space = take(spaceFromJson(jsonSection(object.at("space").get<std::string>())));
    for (const json &set : object.at("kernels"))
      if (set.value("abi", 1) == abi::kVersion) // others are compiled again where they are wanted
        variant.kernels.push_back(kernelSet(set));
    return variant;
  }

  Package package() {
    const json manifest = jsonSection(kManifest);
    Package package;
    package.deftcVersion = manifest.at("deftc_version").get<std::string>();
    package.nvrtcVersion = manifest.at("nvrtc_version").get<std::string>();
    for (const json &file : manifest.at("spec_files"))
      package.specFiles.push_back(
          {file.at("name").get<std::string>(), section(file.at("section").get<std::string>())});
    for (const json &object : manifest.at("variants"))
      package.variants.push_back(variant(object));
    for (const json &object : manifest.at("cpu"))
      package.cpu.push_back(
          {object.at("isa_level").get<int>(), section(object.at("section").get<std::string>())});
    return package;
  }

private:
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
    if (variant.space)
      object["space"] = writer.add(folder + "/space.json", toJson(*variant.space).dump(2) + "\n");
    for (const KernelSet &set : variant.kernels) {
      json attend = json::array();
      for (const Kernel &kernel : set.attend)
        attend.push_back(kernelJson(kernel, folder + "/" + set.arch, writer));
      object["kernels"].push_back({{"arch", set.arch},
                                   {"abi", abi::kVersion},
                                   {"config", config::toJson(set.config)},
                                   {"attend", std::move(attend)},
                                   {"merge", kernelJson(set.merge, folder + "/" + set.arch, writer)}});
    }
    manifest["variants"].push_back(std::move(object));
  }
  for (const CpuObject &object : package.cpu) {
    const std::string name = "cpu/x86-64-v" + std::to_string(object.isaLevel) + ".so";
    manifest["cpu"].push_back(
        {{"isa_level", object.isaLevel}, {"section", writer.add(name, object.sharedObject)}});
  }
  return writer.finish(manifest);
}

Result<Package> readPackage(std::string_view bytes, const std::string &path) {
  Result<std::vector<Section>> sections = readContainer(bytes, path);
  if (!sections)
    return std::move(sections).error();
  try {
    return Reader(std::move(sections).value()).package();
  } catch (const std::exception &error) {
    return Error{ErrorCode::Diagnostics, "package `" + path + "` is malformed: " + error.what(),
                 "build it again with `deftc build`"};
  }
}

Result<Package> openPackage(const std::string &path) {
  Result<std::string> bytes = support::readFile(path);
  if (!bytes)
    return std::move(bytes).error();
  return readPackage(*bytes, path);
}

} // namespace deft::package
