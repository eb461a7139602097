#include "runtime/config_cache/ConfigFile.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/EntryMap.h"
#include "runtime/config_cache/FileLock.h"
#include "runtime/config_cache/OwnFile.h"
#include "runtime/config_cache/RemoveEntries.h"
#include "runtime/config_cache/SetAside.h"

namespace deft::config_cache {

using support::Result;

namespace {

Result<void> checkOwnConfigs(const FileReading &reading, const std::string &path, Owner owner,
                             const DeviceKey &device) {
  return checkOwn({reading.state, reading.file.device, reading.message}, path, owner, device);
}

/// What is in a file that is about to be written: its entries, none when it is new; an error when it must not
/// be touched.
Result<ConfigFile> openForWriting(const std::string &path, Owner owner, const DeviceKey &device,
                                  std::string &aside) {
  FileReading reading = readConfigFile(path, trustIn(owner));
  ConfigFile fresh;
  fresh.device = device;
  if (auto own = checkOwnConfigs(reading, path, owner, device); !own)
    return own.error();
  if (reading.state == FileState::Good)
    return std::move(reading.file);
  if (reading.state == FileState::Broken && owner == Owner::Deftc) {
    auto copied = setAside(path);
    if (!copied)
      return copied.error();
    aside = std::move(*copied);
  }
  return fresh;
}

Result<WriteReport> mergeInto(const std::string &path, Owner owner, const ConfigFile &more,
                              Conflict conflict) {
  if (auto mergeable = checkMergeable(path, owner, more.device); !mergeable)
    return mergeable.error(); // before a lock file lies beside what is not ours
  const auto lock = FileLock::ofFile(path);
  if (!lock)
    return lock.error();
  WriteReport report;
  auto file = openForWriting(path, owner, more.device, report.setAside);
  if (!file)
    return file.error();
  EntryMap entries(more.device.kind);
  for (Entry &entry : file->entries)
    entries.add(std::move(entry));
  for (const Entry &entry : more.entries)
    entries.put(entry, conflict, report);
  file->entries = entries.take();
  const std::size_t kept = file->kept.size();
  addKept(file->kept, more.kept);
  report.added += static_cast<int>(file->kept.size() - kept);
  if (report.added + report.replaced == 0 && report.setAside.empty())
    return report;
  if (auto written = support::writeFileAtomically(path, formatConfigFile(*file), modeIn(owner)); !written)
    return written.error();
  return report;
}

} // namespace

Result<WriteReport> mergeWrite(const std::string &path, Owner owner, const DeviceKey &device,
                               const std::vector<Entry> &entries, Conflict conflict) {
  ConfigFile more;
  more.device = device;
  more.entries = entries;
  return mergeInto(path, owner, more, conflict);
}

Result<WriteReport> mergeWrite(const std::string &path, Owner owner, const ConfigFile &more) {
  return mergeInto(path, owner, more, Conflict::Merge);
}

Result<void> checkMergeable(const std::string &path, Owner owner, const DeviceKey &device) {
  if (auto own = checkOwnConfigs(readConfigFile(path, trustIn(owner)), path, owner, device); !own)
    return own;
  if (auto made = makeFolderOf(path, owner); !made)
    return made;
  return support::checkWritable(path);
}

Result<int> removeEntries(const std::string &path, const std::function<bool(const Entry &)> &isUnwanted) {
  return removeFrom(
      path, [](const std::string &file) { return readConfigFile(file); }, formatConfigFile, isUnwanted);
}

} // namespace deft::config_cache
