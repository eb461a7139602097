#include "runtime/config_cache/ConfigCache.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/tree/StrictJson.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace deft::config_cache {

namespace fs = std::filesystem;

namespace {

/// share/deftc/configs in the folder above that of `program`, as `cmake --install` lays it down, or one
/// higher, as a build tree has it.
std::string sharedFolderOf(const fs::path &program) {
  fs::path folder = program.parent_path();
  for (int level = 0; level < 2 && folder.has_relative_path(); ++level) {
    folder = folder.parent_path();
    const fs::path configs = folder / "share" / "deftc" / "configs";
    std::error_code ignored;
    if (fs::is_directory(configs, ignored))
      return configs.string();
  }
  return {};
}

std::string installedFolder() {
  std::error_code ignored;
  Dl_info self{};
  // In a host program this is the shared library's own file, wherever the program is.
  if (::dladdr(reinterpret_cast<const void *>(&installedFolder), &self) != 0 && self.dli_fname &&
      self.dli_fname[0] == '/')
    if (const std::string found = sharedFolderOf(fs::canonical(self.dli_fname, ignored)); !found.empty())
      return found;
  return sharedFolderOf(fs::read_symlink("/proc/self/exe", ignored));
}

/// A file with one config and nothing else.
std::optional<config::Config> singleConfig(const std::string &text) {
  const auto document = tree::parseStrictJson(text);
  if (!document || !document->is_object() || document->contains("format"))
    return std::nullopt;
  const auto config = config::configFromJson(*document);
  return config ? std::optional(*config) : std::nullopt;
}

} // namespace

std::string originName(Origin origin) {
  switch (origin) {
  case Origin::Override:
    return "override";
  case Origin::User:
    return "user";
  case Origin::Installed:
    return "installed";
  }
  return {};
}

Places defaultPlaces(const std::string &overridePath) {
  Places places;
  places.overridePath = overridePath;
  if (const char *variable = std::getenv("DEFT_CONFIG_PATH"); variable && overridePath.empty())
    places.overridePath = variable;
  if (const auto cache = module_cache::defaultCacheFolder())
    places.userFolder = *cache + "/configs";
  places.installedFolder = installedFolder();
  return places;
}

ConfigCache ConfigCache::load(const Places &places, const DeviceKey &device) {
  ConfigCache cache;
  cache.device_ = device;
  if (!places.overridePath.empty())
    cache.loadOverride(places.overridePath);
  cache.loadFolder(places.userFolder, Origin::User);
  cache.loadFolder(places.installedFolder, Origin::Installed);
  return cache;
}

void ConfigCache::loadOverride(const std::string &path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    loadFolder(path, Origin::Override);
    return;
  }
  if (const auto text = support::readFile(path))
    if (auto config = singleConfig(*text)) {
      fixed_ = std::move(*config);
      fixedPath_ = path;
      return;
    }
  loadFile(path, Origin::Override);
}

/// Only files whose name begins like the device's: those of other devices are not even opened.
void ConfigCache::loadFolder(const std::string &folder, Origin origin) {
  if (folder.empty())
    return;
  const std::string prefix = device_.arch + "-" + std::to_string(device_.units) + "-";
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".json"))
      paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    loadFile(path, origin);
}

void ConfigCache::loadFile(const std::string &path, Origin origin) {
  FileReading reading = readConfigFile(path);
  if (reading.state != FileState::Good) {
    notes_.push_back(reading.message + "; it is not used");
    return;
  }
  const DeviceKey &device = reading.file.device;
  if (device != device_ && !device.isSibling(device_)) {
    notes_.push_back("`" + path + "` is of " + device.text() + "; it is not used");
    return;
  }
  notes_.insert(notes_.end(), reading.file.notes.begin(), reading.file.notes.end());
  for (Entry &entry : reading.file.entries)
    entries_.push_back({std::move(entry), device, origin, path});
}

ConfigCache ConfigCache::without(const LoadedEntry &entry) const {
  ConfigCache rest = *this;
  std::erase_if(rest.entries_, [&](const LoadedEntry &other) {
    return other.device == entry.device && keyOf(other.entry) == keyOf(entry.entry);
  });
  return rest;
}

} // namespace deft::config_cache
