#include "runtime/config_cache/ConfigFile.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/FileLock.h"
#include "runtime/tree/StrictJson.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sys/stat.h>

namespace deft::config_cache {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr const char *kFormat = "deftc-configs";
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

FileReading failed(FileState state, const std::string &path, const std::string &message) {
  FileReading reading;
  reading.state = state;
  reading.message = "`" + path + "`: " + message;
  return reading;
}

void sortByKey(std::vector<Entry> &entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry &a, const Entry &b) { return keyOf(a) < keyOf(b); });
}

void readEntry(const json &object, const std::string &path, ConfigFile &file) {
  auto entry = entryFromJson(object);
  const std::string where =
      "`" + path + "`: entry " + std::to_string(file.entries.size() + file.kept.size() + 1);
  if (!entry) {
    file.kept.push_back(object);
    file.notes.push_back(where + " is not used: " + entry.error().message);
    return;
  }
  file.entries.push_back(std::move(*entry));
}

/// Of two entries with one key, whether `b` is to be preferred. A total order up to equal texts, so that
/// files merge to the same bytes in whatever order they come.
bool isBetter(const Entry &b, const Entry &a, DeviceKey::Kind kind) {
  const std::string hash = kernelHash(kind);
  const bool aFresh = a.provenance.kernelHash == hash, bFresh = b.provenance.kernelHash == hash;
  if (aFresh != bFresh)
    return bFresh;
  if (a.provenance.date != b.provenance.date)
    return b.provenance.date > a.provenance.date;
  if (a.measurement.tunedUs != b.measurement.tunedUs)
    return b.measurement.tunedUs < a.measurement.tunedUs;
  return toJson(b).dump() < toJson(a).dump();
}

void mergeKept(std::vector<json> &kept, const std::vector<json> &more) {
  for (const json &object : more)
    if (std::find(kept.begin(), kept.end(), object) == kept.end())
      kept.push_back(object);
  std::sort(kept.begin(), kept.end(), [](const json &a, const json &b) { return a.dump() < b.dump(); });
}

/// Puts a file that is no longer whole beside itself, so that nothing of it is lost; its new name.
Result<std::string> setAside(const std::string &path) {
  for (int attempt = 1;; ++attempt) {
    const std::string aside = path + ".broken-" + std::to_string(attempt);
    if (std::filesystem::exists(aside) && attempt < 1000)
      continue;
    if (::rename(path.c_str(), aside.c_str()) != 0)
      return Error{ErrorCode::Environment, "cannot move the broken `" + path + "` aside", ""};
    return aside;
  }
}

Result<void> makeFolderOf(const std::string &path) {
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  std::error_code failure;
  if (std::filesystem::create_directories(folder, failure); failure)
    return Error{ErrorCode::Environment, "cannot make the folder `" + folder + "`: " + failure.message(), ""};
  return {};
}

Error notWritten(const std::string &path, const std::string &why, const std::string &hint = {}) {
  return {ErrorCode::Environment, "`" + path + "` is left as it is: " + why, hint};
}

/// What another version or device wrote, or nobody can read, is not touched.
Result<void> checkOwn(const FileReading &reading, const std::string &path, const DeviceKey &device) {
  if (reading.state == FileState::Good && reading.file.device != device)
    return notWritten(path, "it is of " + reading.file.device.text() + ", not of " + device.text());
  if (reading.state == FileState::Unknown || reading.state == FileState::Unreadable)
    return Error{ErrorCode::Environment, reading.message + "; it is left as it is", ""};
  return {};
}

/// What is in a file that is about to be written: its entries, none when it is new; an error when it must not
/// be touched.
Result<ConfigFile> openForWriting(const std::string &path, const DeviceKey &device, std::string &aside) {
  FileReading reading = readConfigFile(path);
  ConfigFile fresh;
  fresh.device = device;
  if (auto own = checkOwn(reading, path, device); !own)
    return own.error();
  if (reading.state == FileState::Good)
    return std::move(reading.file);
  if (reading.state == FileState::Broken) {
    auto moved = setAside(path);
    if (!moved)
      return moved.error();
    aside = std::move(*moved);
  }
  return fresh;
}

Result<WriteReport> mergeInto(const std::string &path, const ConfigFile &more, Conflict conflict) {
  if (auto made = makeFolderOf(path); !made)
    return made.error();
  const auto lock = FileLock::take(path + ".lock");
  if (!lock)
    return lock.error();
  WriteReport report;
  auto file = openForWriting(path, more.device, report.setAside);
  if (!file)
    return file.error();
  for (const Entry &entry : more.entries) {
    const auto same = std::find_if(file->entries.begin(), file->entries.end(),
                                   [&](const Entry &old) { return keyOf(old) == keyOf(entry); });
    if (same == file->entries.end()) {
      file->entries.push_back(entry);
      ++report.added;
    } else if (toJson(*same) == toJson(entry) ||
               (conflict == Conflict::Merge && !isBetter(entry, *same, more.device.kind))) {
      ++report.unchanged;
    } else {
      *same = entry;
      ++report.replaced;
    }
  }
  const std::size_t kept = file->kept.size();
  mergeKept(file->kept, more.kept);
  report.added += static_cast<int>(file->kept.size() - kept);
  if (report.added + report.replaced == 0 && report.setAside.empty())
    return report;
  if (auto written = support::writeFileAtomically(path, formatConfigFile(*file)); !written)
    return written.error();
  return report;
}

} // namespace

FileReading parseConfigFile(std::string_view text, const std::string &path) {
  const auto document = tree::parseStrictJson(text);
  if (!document)
    return failed(FileState::Broken, path, document.error().message);
  const json &root = *document;
  // Another version may look any way beyond these two keys.
  if (!root.is_object() || !root.contains("format") || root["format"] != kFormat)
    return failed(FileState::Broken, path,
                  "it is no file of configs: its `format` is not " + std::string(kFormat));
  if (!root.contains("version") || !root["version"].is_number_integer())
    return failed(FileState::Broken, path, "it does not say its version");
  if (root["version"] != kFileVersion)
    return failed(FileState::Unknown, path,
                  "it is of version " + root["version"].dump() + ", this deftc knows " +
                      std::to_string(kFileVersion));
  if (auto checked = tree::checkKeys(root, "the file", {"format", "version", "device", "entries"}); !checked)
    return failed(FileState::Broken, path, checked.error().message);
  auto device = deviceKeyFromJson(root["device"]);
  if (!device)
    return failed(FileState::Broken, path, device.error().message);
  if (!root["entries"].is_array())
    return failed(FileState::Broken, path, "`entries` is not an array");

  FileReading reading;
  reading.state = FileState::Good;
  reading.file.device = std::move(*device);
  for (const json &object : root["entries"])
    readEntry(object, path, reading.file);
  ConfigFile &file = reading.file;
  sortByKey(file.entries);
  for (std::size_t i = 1; i < file.entries.size();) {
    Entry &first = file.entries[i - 1];
    if (keyOf(file.entries[i]) != keyOf(first)) {
      ++i;
      continue;
    }
    file.notes.push_back("`" + path + "`: `" + keyOf(first) + "` stands twice, the better one is used");
    if (isBetter(file.entries[i], first, file.device.kind))
      first = file.entries[i];
    file.entries.erase(file.entries.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return reading;
}

FileReading readConfigFile(const std::string &path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return failed(FileState::Absent, path, "there is no such file");
  const auto text = support::readFile(path, kMostBytes);
  if (!text)
    return failed(FileState::Unreadable, path, text.error().message);
  return parseConfigFile(*text, path);
}

std::string formatConfigFile(const ConfigFile &file) {
  std::vector<Entry> sorted = file.entries;
  sortByKey(sorted);
  json entries = json::array();
  for (const Entry &entry : sorted)
    entries.push_back(toJson(entry));
  for (const json &object : file.kept)
    entries.push_back(object);
  // nlohmann's objects are sorted by key: the same entries give the same bytes.
  return json{{"format", kFormat},
              {"version", kFileVersion},
              {"device", toJson(file.device)},
              {"entries", entries}}
             .dump(1) +
         "\n";
}

Result<ConfigFile> mergeFiles(const ConfigFile &a, const ConfigFile &b) {
  if (a.device != b.device)
    return Error{ErrorCode::Usage,
                 "configs of " + a.device.text() + " and of " + b.device.text() + " do not mix",
                 "merge the files of one device"};
  std::map<std::string, Entry> byKey;
  for (const ConfigFile *file : {&a, &b})
    for (const Entry &entry : file->entries) {
      const auto [at, isNew] = byKey.emplace(keyOf(entry), entry);
      if (!isNew && isBetter(entry, at->second, a.device.kind))
        at->second = entry;
    }
  ConfigFile merged;
  merged.device = a.device;
  for (auto &[key, entry] : byKey)
    merged.entries.push_back(std::move(entry));
  mergeKept(merged.kept, a.kept);
  mergeKept(merged.kept, b.kept);
  return merged;
}

Result<WriteReport> mergeWrite(const std::string &path, const DeviceKey &device,
                               const std::vector<Entry> &entries, Conflict conflict) {
  ConfigFile more;
  more.device = device;
  more.entries = entries;
  return mergeInto(path, more, conflict);
}

Result<WriteReport> mergeWrite(const std::string &path, const ConfigFile &more) {
  return mergeInto(path, more, Conflict::Merge);
}

Result<void> checkMergeable(const std::string &path, const DeviceKey &device) {
  if (auto own = checkOwn(readConfigFile(path), path, device); !own)
    return own;
  if (auto made = makeFolderOf(path); !made)
    return made;
  return support::checkWritable(path);
}

Result<int> removeEntries(const std::string &path, const std::function<bool(const Entry &)> &isUnwanted) {
  const auto lock = FileLock::take(path + ".lock");
  if (!lock)
    return lock.error();
  FileReading reading = readConfigFile(path);
  if (reading.state == FileState::Absent)
    return 0;
  if (reading.state != FileState::Good)
    return Error{ErrorCode::Environment, reading.message + "; it is left as it is", ""};
  const auto removed = static_cast<int>(std::erase_if(reading.file.entries, isUnwanted));
  if (removed == 0)
    return 0;
  if (auto written = support::writeFileAtomically(path, formatConfigFile(reading.file)); !written)
    return written.error();
  return removed;
}

} // namespace deft::config_cache
