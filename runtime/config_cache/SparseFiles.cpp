#include "runtime/config_cache/SparseFiles.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/FileLock.h"
#include "runtime/config_cache/OwnFile.h"
#include "runtime/config_cache/SetAside.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace deft::config_cache {

namespace fs = std::filesystem;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;
using support::Trust;

namespace {

constexpr FileFormat kFormat{"deft-sparse", "what was tuned for sparse layers", 1};

SparseReading readingOf(DeviceFile document, const std::string &path) {
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
    reading.file.kept.push_back(object);
  }
  return reading;
}

SparseReading readSparseFile(const std::string &path, Trust trust) {
  return readingOf(readDeviceFile(path, trust, kFormat), path);
}

void put(const SparseEntry &entry, std::vector<SparseEntry> &all) {
  SparseEntry merged = entry;
  for (SparseEntry &other : all) {
    if (keyOf(other) == keyOf(entry))
      merged = withOlderCuts(std::move(merged), other);
    else if (entry.isChosen && areOfSameLists(other, entry))
      other.isChosen = false;
  }
  const auto same = std::find_if(all.begin(), all.end(),
                                 [&](const SparseEntry &other) { return keyOf(other) == keyOf(entry); });
  if (same == all.end()) {
    all.push_back(std::move(merged));
    return;
  }
  if (same->isFresh()) // a package's kernel is timed by itself, and stays what specs are compiled with
    merged.isChosen |= same->isChosen;
  *same = std::move(merged);
}

} // namespace

SparseReading parseSparseFile(std::string_view text, const std::string &path) {
  return readingOf(parseDeviceFile(text, path, kFormat), path);
}

std::string formatSparseFile(const SparseFile &file) {
  std::map<std::string, json> sorted;
  for (const SparseEntry &entry : file.entries)
    sorted.emplace(keyOf(entry), toJson(entry));
  json entries = json::array();
  for (const auto &[key, entry] : sorted)
    entries.push_back(entry);
  for (const json &object : file.kept)
    entries.push_back(object);
  return formatDeviceFile(kFormat, file.device, entries);
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

Result<std::string> saveSparse(const Places &places, const DeviceKey &device,
                               const std::vector<SparseEntry> &entries, const std::string &named) {
  const Place place = named.empty() ? Place::Cache : Place::Named;
  if (place == Place::Cache && places.userSparse.empty())
    return Error{ErrorCode::Environment, "there is no place for what is tuned of sparse layers",
                 "set DEFT_CACHE_DIR to a folder"};
  const std::string path = place == Place::Named ? named : places.userSparse + "/" + device.fileName();
  const auto readOwn = [&]() -> Result<SparseReading> {
    SparseReading reading = readSparseFile(path, trustIn(place));
    if (auto own = checkOwn({reading.state, reading.file.device, reading.message}, path, place, device); !own)
      return own.error();
    return reading;
  };
  if (auto own = readOwn(); !own)
    return own.error(); // before a lock file lies beside what is not ours
  if (auto made = makeFolderOf(path, place); !made)
    return made.error();
  if (auto writable = support::checkWritable(path); !writable)
    return writable.error();
  const auto lock = FileLock::ofFile(path);
  if (!lock)
    return lock.error();
  auto reading = readOwn();
  if (!reading)
    return reading.error();
  if (reading->state == FileState::Broken && place == Place::Cache)
    if (auto copied = setAside(path); !copied)
      return copied.error();
  SparseFile file = std::move(reading->file); // of what is not good there is nothing in it
  file.device = device;
  for (const SparseEntry &entry : entries)
    put(entry, file.entries);
  if (auto written = support::writeFileAtomically(path, formatSparseFile(file), modeIn(place)); !written)
    return written.error();
  return path;
}

} // namespace deft::config_cache
