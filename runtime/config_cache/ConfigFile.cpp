#include "runtime/config_cache/ConfigFile.h"

#include "runtime/config_cache/DeviceFile.h"
#include "runtime/config_cache/EntryMap.h"

#include <nlohmann/json.hpp>

#include <map>
#include <utility>

namespace deft::config_cache {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr FileFormat kFormat{kConfigsFormat, "configs", kFileVersion};
/// At most so many notes are made of what is wrong with a file.
constexpr std::size_t kMostNotes = 8;

FileReading readingOf(DeviceFile document, const std::string &path) {
  FileReading reading;
  reading.state = document.state;
  reading.message = std::move(document.message);
  if (document.state != FileState::Good)
    return reading;
  reading.file.device = std::move(document.device);
  ConfigFile &file = reading.file;
  std::size_t faults = 0;
  const auto note = [&](const std::string &text) {
    if (++faults <= kMostNotes)
      file.notes.push_back("`" + path + "`: " + text);
  };
  EntryMap entries(file.device.kind);
  for (std::size_t i = 0; i < document.entries.size(); ++i) {
    const json &object = document.entries[i];
    if (auto entry = entryFromJson(object, file.device.kind)) {
      entries.add(std::move(*entry));
    } else {
      file.kept.push_back(object.dump());
      note("entry " + std::to_string(i + 1) + " is not used: " + entry.error().message);
    }
  }
  entries.eachRepeated([&](const std::string &key, int times) {
    note("`" + key + "` stands " +
         (times == 2 ? "twice, the better" : std::to_string(times) + " times, the best") + " one is used");
  });
  if (faults > kMostNotes)
    file.notes.push_back("`" + path + "`: " + std::to_string(faults - kMostNotes) +
                         " more faults like these");
  file.entries = entries.take();
  return reading;
}

} // namespace

FileReading parseConfigFile(std::string_view text, const std::string &path) {
  return readingOf(parseDeviceFile(text, path, kFormat), path);
}

FileReading readConfigFile(const std::string &path, support::Trust trust) {
  return readingOf(readDeviceFile(path, trust, kFormat), path);
}

std::string formatConfigFile(const ConfigFile &file) {
  std::map<std::string, const Entry *> sorted;
  for (const Entry &entry : file.entries)
    sorted.emplace(keyOf(entry), &entry);
  json entries = json::array();
  for (const auto &[key, entry] : sorted)
    entries.push_back(toJson(*entry));
  for (const std::string &text : file.kept)
    entries.push_back(json::parse(text));
  return formatDeviceFile(kFormat, file.device, entries);
}

Result<ConfigFile> mergeFiles(const ConfigFile &a, const ConfigFile &b) {
  if (a.device != b.device)
    return Error{ErrorCode::Usage,
                 "configs of " + a.device.text() + " and of " + b.device.text() + " do not mix",
                 "merge the files of one device"};
  EntryMap entries(a.device.kind);
  for (const ConfigFile *file : {&a, &b})
    for (const Entry &entry : file->entries)
      entries.add(entry);
  ConfigFile merged;
  merged.device = a.device;
  merged.entries = entries.take();
  addKept(merged.kept, a.kept);
  addKept(merged.kept, b.kept);
  return merged;
}

} // namespace deft::config_cache
