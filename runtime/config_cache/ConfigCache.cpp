#include "runtime/config_cache/ConfigCache.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/GuardedFile.h"
#include "runtime/config_cache/DeviceFile.h"
#include "runtime/config_cache/PriceFiles.h"
#include "runtime/config_cache/SparseFiles.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/tree/StrictJson.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace deft::config_cache {

namespace fs = std::filesystem;
using support::Error;
using support::ErrorCode;

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

/// A file that somebody names. Its state is Read, or the fault is told with its path.
support::GuardedFile readNamed(const std::string &path) {
  support::GuardedFile file = support::readGuarded(path, support::kMostCachedBytes, support::Trust::Anyone);
  if (!file.fault.empty())
    file.fault = "cannot read `" + path + "`: " + file.fault;
  return file;
}

bool isRead(const support::GuardedFile &file) { return file.state == support::GuardedFile::State::Read; }

/// The config of a file with one and nothing else; none where the file is to be something else.
std::optional<support::Result<config::Config>> singleConfig(const std::string &text, DeviceKey::Kind device) {
  const auto document = tree::parseStrictJson(text);
  if (!document || !document->is_object() || document->contains("format"))
    return std::nullopt;
  return config::configFromJson(*document, device);
}

/// In the user's own folder nothing counts that somebody else can have put there.
void findInFolder(const std::string &folder, const std::string &prefix, Origin origin,
                  std::vector<FoundFile> &files) {
  std::error_code none;
  if (origin == Origin::User && fs::is_directory(folder, none))
    if (const std::string fault = support::faultOfPrivateFolder(folder); !fault.empty()) {
      files.push_back({origin, folder, {FileState::Untrusted, {}, "`" + folder + "`: " + fault}});
      return;
    }
  const auto trust = origin == Origin::User ? support::Trust::Private : support::Trust::Anyone;
  for (const std::string &path : deviceFilesIn(folder, prefix))
    files.push_back({origin, path, readConfigFile(path, trust)});
}

/// A file that is named is read whatever its name.
std::vector<FoundFile> findFiles(const Places &places, const std::string &prefix) {
  std::vector<FoundFile> files;
  std::error_code ignored;
  if (fs::is_directory(places.overridePath, ignored))
    findInFolder(places.overridePath, prefix, Origin::Override, files);
  else if (!places.overridePath.empty())
    files.push_back({Origin::Override, places.overridePath, readConfigFile(places.overridePath)});
  findInFolder(places.userFolder, prefix, Origin::User, files);
  findInFolder(places.installedFolder, prefix, Origin::Installed, files);
  return files;
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
  if (const auto cache = module_cache::defaultCacheFolder()) {
    places.userFolder = *cache + "/configs";
    places.userPrices = *cache + "/prices";
    places.userSparse = *cache + "/sparse";
  }
  places.installedFolder = installedFolder();
  if (!places.installedFolder.empty())
    places.installedSparse = (fs::path(places.installedFolder).parent_path() / "sparse").string();
  return places;
}

support::Result<config::Config> readConfig(const std::string &path, DeviceKey::Kind device) {
  const support::GuardedFile file = readNamed(path);
  if (!isRead(file))
    return Error{ErrorCode::Environment, file.fault, ""};
  if (const auto document = tree::parseStrictJson(file.bytes); !document)
    return Error{ErrorCode::Usage, "`" + path + "`: " + document.error().message, ""};
  const auto config = singleConfig(file.bytes, device);
  if (!config)
    return Error{ErrorCode::Usage, "`" + path + "` is no file with one config",
                 "it must be one object, like `config` in the output of `deftc run --json`"};
  if (!*config)
    return Error{ErrorCode::Usage, "`" + path + "`: " + config->error().message, config->error().hint};
  return *config;
}

support::Result<void> checkOverride(const std::string &path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return {};
  const FileReading reading = readConfigFile(path);
  if (reading.state == FileState::Good)
    return {};
  constexpr auto kAny = DeviceKey::Kind::Gpu; // a config's form is the same for all
  if (const support::GuardedFile file = readNamed(path); isRead(file) && singleConfig(file.bytes, kAny)) {
    const auto config = readConfig(path, kAny);
    return config ? support::Result<void>() : config.error();
  }
  return Error{ErrorCode::Usage, reading.message, ""};
}

std::vector<FoundFile> findFiles(const Places &places) { return findFiles(places, ""); }

/// Only files whose name begins like the device's: those of other devices are not even opened.
ConfigCache ConfigCache::load(const Places &places, const DeviceKey &device, bool hasSparse) {
  ConfigCache cache;
  cache.device_ = device;
  if (const support::GuardedFile file = readNamed(places.overridePath); isRead(file))
    if (auto config = singleConfig(file.bytes, device.kind); config && *config) {
      cache.fixed_ = std::move(**config);
      cache.fixedPath_ = places.overridePath;
    }
  for (FoundFile &found : findFiles(places, device.arch + "-" + std::to_string(device.units) + "-"))
    if (!cache.fixed_ || found.path != cache.fixedPath_)
      cache.addFile(std::move(found));
  FoundPrices found = findPrices(places, device);
  cache.prices_ = std::move(found.prices);
  cache.notes_.insert(cache.notes_.end(), found.notes.begin(), found.notes.end());
  if (!hasSparse)
    return cache;
  FoundSparse sparse = findSparse(places, device);
  cache.sparse_ = std::move(sparse.tuning);
  cache.notes_.insert(cache.notes_.end(), sparse.notes.begin(), sparse.notes.end());
  return cache;
}

void ConfigCache::addFile(FoundFile found) {
  FileReading &reading = found.reading;
  if (reading.state != FileState::Good) {
    notes_.push_back(reading.message + "; it is not used");
    return;
  }
  const DeviceKey &device = reading.file.device;
  if (device != device_ && !device.isSibling(device_)) {
    notes_.push_back("`" + found.path + "` is of " + device.text() + "; it is not used");
    return;
  }
  notes_.insert(notes_.end(), reading.file.notes.begin(), reading.file.notes.end());
  for (Entry &entry : reading.file.entries)
    entries_.push_back({std::move(entry), device, found.origin, found.path});
}

ConfigCache ConfigCache::withoutEntries() const {
  ConfigCache rest;
  rest.device_ = device_;
  rest.prices_ = prices_;
  return rest;
}

ConfigCache ConfigCache::without(const LoadedEntry &entry) const {
  ConfigCache rest = *this;
  std::erase_if(rest.entries_, [&](const LoadedEntry &other) {
    return other.device == entry.device && keyOf(other.entry) == keyOf(entry.entry);
  });
  return rest;
}

} // namespace deft::config_cache
