#include "runtime/config_cache/ConfigFile.h"

#include "runtime/config_cache/EntryMap.h"
#include "runtime/tree/StrictJson.h"

#include <map>

namespace deft::config_cache {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr const char *kFormat = "deftc-configs";
/// At most so many notes are made of what is wrong with a file.
constexpr std::size_t kMostNotes = 8;

FileReading failed(FileState state, const std::string &path, const std::string &message) {
  FileReading reading;
  reading.state = state;
  reading.message = "`" + path + "`: " + message;
  return reading;
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
  ConfigFile &file = reading.file;
  std::size_t faults = 0;
  const auto note = [&](const std::string &text) {
    if (++faults <= kMostNotes)
      file.notes.push_back("`" + path + "`: " + text);
  };
  EntryMap entries(file.device.kind);
  for (std::size_t i = 0; i < root["entries"].size(); ++i) {
    const json &object = root["entries"][i];
    if (auto entry = entryFromJson(object, file.device.kind)) {
      entries.add(std::move(*entry));
    } else {
      file.kept.push_back(object);
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

FileReading readConfigFile(const std::string &path, support::Trust trust) {
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
  return parseConfigFile(file.bytes, path);
}

std::string formatConfigFile(const ConfigFile &file) {
  std::map<std::string, const Entry *> sorted;
  for (const Entry &entry : file.entries)
    sorted.emplace(keyOf(entry), &entry);
  json entries = json::array();
  for (const auto &[key, entry] : sorted)
    entries.push_back(toJson(*entry));
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
