#include "runtime/config_cache/SparseFiles.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/EntryMap.h"
#include "runtime/config_cache/FileLock.h"
#include "runtime/config_cache/OwnFile.h"
#include "runtime/config_cache/RemoveEntries.h"
#include "runtime/config_cache/SetAside.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace deft::config_cache {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

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

Result<void> checkOwnSparse(const SparseReading &reading, const std::string &path, Owner owner,
                            const DeviceKey &device) {
  return checkOwn({reading.state, reading.file.device, reading.message}, path, owner, device);
}

/// What stands in a file is given to `change`, and what that makes of it is written, all under the file's
/// lock. The copy of a broken file that was there; empty: it was none.
Result<std::string> edit(const std::string &path, Owner owner, const DeviceKey &device,
                         const std::function<void(SparseFile &)> &change) {
  if (auto mergeable = checkSparseMergeable(path, owner, device); !mergeable)
    return mergeable.error(); // before a lock file lies beside what is not ours
  const auto lock = FileLock::ofFile(path);
  if (!lock)
    return lock.error();
  SparseReading reading = readSparseFile(path, trustIn(owner));
  if (auto own = checkOwnSparse(reading, path, owner, device); !own)
    return own.error();
  std::string aside;
  if (reading.state == FileState::Broken && owner == Owner::Deftc) {
    auto copied = setAside(path);
    if (!copied)
      return copied.error();
    aside = std::move(*copied);
  }
  SparseFile file = std::move(reading.file); // of what is not good there is nothing in it
  file.device = device;
  change(file);
  if (auto written = support::writeFileAtomically(path, formatSparseFile(file), modeIn(owner)); !written)
    return written.error();
  return aside;
}

std::map<std::string, nlohmann::json> byKey(const SparseFile &file) {
  std::map<std::string, nlohmann::json> entries;
  for (const SparseEntry &entry : file.entries)
    entries.emplace(keyOf(entry), toJson(entry));
  return entries;
}

} // namespace

Result<void> checkSparseMergeable(const std::string &path, Owner owner, const DeviceKey &device) {
  if (auto own = checkOwnSparse(readSparseFile(path, trustIn(owner)), path, owner, device); !own)
    return own;
  if (auto made = makeFolderOf(path, owner); !made)
    return made;
  return support::checkWritable(path);
}

Result<std::string> saveSparse(const Places &places, const DeviceKey &device,
                               const std::vector<SparseEntry> &entries, const std::string &named) {
  const Owner owner = named.empty() ? Owner::Deftc : Owner::User;
  if (owner == Owner::Deftc && places.userSparse.empty())
    return Error{ErrorCode::Environment, "there is no folder for tuned sparse layers",
                 "set DEFT_CACHE_DIR to a folder"};
  const std::string path = owner == Owner::User ? named : places.userSparse + "/" + device.fileName();
  const auto saved = edit(path, owner, device, [&](SparseFile &file) {
    for (const SparseEntry &entry : entries)
      put(entry, file.entries);
  });
  return saved ? Result<std::string>(path) : saved.error();
}

Result<SparseFile> mergeSparseFiles(const std::vector<SparseFile> &files) {
  SparseFile merged;
  std::vector<const SparseEntry *> all;
  for (const SparseFile &file : files) {
    if (file.device != files.front().device)
      return Error{ErrorCode::Usage,
                   "sparse layers of " + files.front().device.text() + " and of " + file.device.text() +
                       " do not mix",
                   "merge the files of one device"};
    for (const SparseEntry &entry : file.entries)
      all.push_back(&entry);
    addKept(merged.kept, file.kept);
  }
  merged.device = files.front().device;
  // As they would have been saved one after the other, those of today's kernels last. A date that is not yet,
  // by more than clocks differ, is none.
  const std::string latest = timestamp(std::chrono::hours(24));
  const auto rank = [&](const SparseEntry *entry) {
    const std::string &date = entry->provenance.date;
    return std::tuple(entry->isFresh(), date <= latest ? date : std::string(), toJson(*entry).dump());
  };
  std::sort(all.begin(), all.end(),
            [&](const SparseEntry *a, const SparseEntry *b) { return rank(a) < rank(b); });
  for (const SparseEntry *entry : all)
    put(*entry, merged.entries);
  return merged;
}

Result<WriteReport> mergeIntoSparse(const std::string &path, Owner owner, const SparseFile &more) {
  WriteReport report;
  auto aside = edit(path, owner, more.device, [&](SparseFile &file) {
    const auto before = byKey(file);
    const std::size_t kept = file.kept.size();
    file = std::move(*mergeSparseFiles({file, more}));
    report.added = static_cast<int>(file.kept.size() - kept);
    const auto after = byKey(file);
    for (const auto &[key, entry] : byKey(more)) {
      const auto old = before.find(key);
      ++(old == before.end()            ? report.added
         : old->second == after.at(key) ? report.unchanged
                                        : report.replaced);
    }
  });
  if (!aside)
    return aside.error();
  report.setAside = std::move(*aside);
  return report;
}

Result<int> removeSparseEntries(const std::string &path,
                                const std::function<bool(const SparseEntry &)> &isUnwanted) {
  return removeFrom(
      path, [](const std::string &file) { return readSparseFile(file); }, formatSparseFile, isUnwanted);
}

} // namespace deft::config_cache
