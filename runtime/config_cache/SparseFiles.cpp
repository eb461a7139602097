#include "runtime/config_cache/SparseFiles.h"

#include "runtime/config_cache/DeviceFile.h"
#include "runtime/tree/StrictJson.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <utility>

namespace deft::config_cache {

namespace fs = std::filesystem;
using nlohmann::json;
using support::Trust;

namespace {

constexpr FileFormat kSparseFileFormat{kSparseFormat, "what was tuned for sparse layers", 2};

SparseReading sparseReadingOf(DeviceFile document, const std::string &path) {
  SparseReading reading;
  reading.state = document.state;
  reading.message = std::move(document.message);
  if (document.state != FileState::Good)
    return reading;
  reading.file.device = std::move(document.device);
  for (const json &object : document.entries) {
    if (auto entry = sparseEntryFromJson(object)) {
      reading.file.entries.push_back(std::move(*entry));
      continue;
    } else if (reading.file.kept.empty()) { // one note a file is enough
      reading.file.notes.push_back("`" + path + "`: an entry is not used: " + entry.error().message);
    }
    reading.file.kept.push_back(object.dump());
  }
  return reading;
}

} // namespace

SparseReading parseSparseFile(std::string_view text, const std::string &path) {
  return sparseReadingOf(parseDeviceFile(text, path, kSparseFileFormat), path);
}

SparseReading readSparseFile(const std::string &path, Trust trust) {
  return sparseReadingOf(readDeviceFile(path, trust, kSparseFileFormat), path);
}

bool saysSparse(const std::string &path) {
  const support::GuardedFile file = support::readGuarded(path, support::kMostCachedBytes, Trust::Anyone);
  const auto document = tree::parseStrictJson(file.bytes);
  return document && document->is_object() && document->contains("format") &&
         (*document)["format"] == kSparseFileFormat.name;
}

std::string formatSparseFile(const SparseFile &file) {
  std::map<std::string, json> sorted;
  for (const SparseEntry &entry : file.entries)
    sorted.emplace(keyOf(entry), toJson(entry));
  json entries = json::array();
  for (const auto &[key, entry] : sorted)
    entries.push_back(entry);
  for (const std::string &text : file.kept)
    entries.push_back(json::parse(text));
  return formatDeviceFile(kSparseFileFormat, file.device, entries);
}

std::vector<FoundSparseFile> findSparseFiles(const Places &places) {
  std::vector<FoundSparseFile> files;
  std::error_code none;
  if (fs::is_directory(places.userSparse, none)) {
    if (const std::string fault = support::faultOfPrivateFolder(places.userSparse); !fault.empty())
      files.push_back({Origin::User,
                       places.userSparse,
                       {FileState::Untrusted, {}, "`" + places.userSparse + "`: " + fault}});
    else
      for (const std::string &path : deviceFilesIn(places.userSparse))
        files.push_back({Origin::User, path, readSparseFile(path, Trust::Private)});
  }
  for (const std::string &path : deviceFilesIn(places.installedSparse))
    files.push_back({Origin::Installed, path, readSparseFile(path)});
  return files;
}

FoundSparse findSparse(const Places &places, const DeviceKey &device) {
  FoundSparse found;
  std::vector<LoadedSparseEntry> entries;
  const auto read = [&](const std::string &folder, Trust trust) {
    std::error_code none;
    if (folder.empty() || !fs::is_directory(folder, none))
      return;
    if (const std::string fault = trust == Trust::Private ? support::faultOfPrivateFolder(folder) : "";
        !fault.empty()) {
      found.notes.push_back("`" + folder + "`: " + fault + "; it is not used");
      return;
    }
    const std::string path = folder + "/" + device.fileName();
    SparseReading reading = readSparseFile(path, trust);
    if (reading.state == FileState::Absent)
      return;
    if (reading.state != FileState::Good) {
      found.notes.push_back(reading.message + "; it is not used");
      return;
    }
    if (reading.file.device != device) {
      found.notes.push_back("`" + path + "` is of " + reading.file.device.text() + "; it is not used");
      return;
    }
    found.notes.insert(found.notes.end(), reading.file.notes.begin(), reading.file.notes.end());
    for (SparseEntry &entry : reading.file.entries)
      entries.push_back({std::move(entry), path});
  };
  read(places.userSparse, Trust::Private);
  read(places.installedSparse, Trust::Anyone);
  found.tuning = SparseTuning(std::move(entries));
  return found;
}

} // namespace deft::config_cache
