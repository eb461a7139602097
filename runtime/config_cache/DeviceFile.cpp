#include "runtime/config_cache/DeviceFile.h"

#include "runtime/tree/StrictJson.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace deft::config_cache {

using nlohmann::json;

namespace {

DeviceFile failed(FileState state, const std::string &path, const std::string &message) {
  DeviceFile file;
  file.state = state;
  file.message = "`" + path + "`: " + message;
  return file;
}

constexpr const char *kHash = "kernel_hash", *kHashes = "kernel_hashes";

/// The hash of the kernels that an entry was timed with; null where the entry has none.
json *hashOf(json &entry) {
  const auto at = [](json *object, const char *key) -> json * {
    return object && object->is_object() && object->contains(key) ? &(*object)[key] : nullptr;
  };
  return at(at(&entry, "provenance"), kHash);
}

/// Files name kernels by their place in a list, entries by the hash itself.
json takeHashes(json &entries) {
  json hashes = json::array();
  for (json &entry : entries)
    if (json *hash = hashOf(entry); hash && hash->is_string()) {
      const auto found = std::find(hashes.begin(), hashes.end(), *hash);
      const auto place = found - hashes.begin();
      if (found == hashes.end())
        hashes.push_back(*hash);
      *hash = place;
    }
  return hashes;
}

/// A place that the list does not have becomes null, so that what reads the entry says what is wrong with it.
void giveHashes(const json &hashes, json &entries) {
  for (json &entry : entries)
    if (json *hash = hashOf(entry); hash && hash->is_number_integer()) {
      const bool isThere = hash->is_number_unsigned() && hash->get<std::size_t>() < hashes.size();
      *hash = isThere ? hashes[hash->get<std::size_t>()] : json();
    }
}

} // namespace

DeviceFile parseDeviceFile(std::string_view text, const std::string &path, const FileFormat &format) {
  auto document = tree::parseStrictJson(text);
  if (!document)
    return failed(FileState::Broken, path, document.error().message);
  json &root = *document;
  // Another version may look any way beyond these two keys.
  if (!root.is_object() || !root.contains("format") || root["format"] != format.name)
    return failed(FileState::Broken, path,
                  std::string("it is no file of ") + format.what + ": its `format` is not " + format.name);
  if (!root.contains("version") || !root["version"].is_number_integer())
    return failed(FileState::Broken, path, "it has no version");
  constexpr int kWithoutHashes = 1; // whose entries have their hashes themselves
  if (root["version"] != format.version && root["version"] != kWithoutHashes)
    return failed(FileState::Unknown, path,
                  "it is of version " + root["version"].dump() + ", this deftc knows " +
                      std::to_string(format.version));
  if (auto checked = tree::checkKeys(root, "the file", {"format", "version", "device", "entries"}, {kHashes});
      !checked)
    return failed(FileState::Broken, path, checked.error().message);
  auto device = deviceKeyFromJson(root["device"]);
  if (!device)
    return failed(FileState::Broken, path, device.error().message);
  if (!root["entries"].is_array())
    return failed(FileState::Broken, path, "`entries` is not an array");
  const json hashes = root.value(kHashes, json::array());
  if (!hashes.is_array())
    return failed(FileState::Broken, path, "`kernel_hashes` is not an array");
  giveHashes(hashes, root["entries"]);
  DeviceFile file;
  file.state = FileState::Good;
  file.device = std::move(*device);
  file.entries = std::move(root["entries"]);
  return file;
}

DeviceFile readDeviceFile(const std::string &path, support::Trust trust, const FileFormat &format) {
  using State = support::GuardedFile::State;
  const support::GuardedFile file = support::readGuarded(path, support::kMostCachedBytes, trust);
  switch (file.state) {
  case State::Absent:
    return failed(FileState::Absent, path, "there is no such file");
  case State::Unreadable:
    return failed(FileState::Unreadable, path, file.fault);
  case State::Untrusted:
    return failed(FileState::Untrusted, path, file.fault);
  case State::Read:
    break;
  }
  return parseDeviceFile(file.bytes, path, format);
}

std::string formatDeviceFile(const FileFormat &format, const DeviceKey &device, json entries) {
  const json hashes = takeHashes(entries);
  // nlohmann's objects are sorted by key: the same entries give the same bytes.
  return json{{"format", format.name},
              {"version", format.version},
              {"device", toJson(device)},
              {kHashes, hashes},
              {"entries", std::move(entries)}}
             .dump(1) +
         "\n";
}

std::vector<std::string> deviceFilesIn(const std::string &folder, const std::string &prefix) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".json"))
      paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace deft::config_cache
