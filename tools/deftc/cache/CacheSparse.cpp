#include "tools/deftc/cache/CacheSparse.h"

#include "compiler/spec/Names.h"
#include "runtime/config_cache/DeviceFile.h"
#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/common/DeviceInput.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/SelectText.h"
#include "tools/deftc/common/SparseChoice.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using config_cache::FileState;
using config_cache::FoundSparseFile;
using config_cache::SparseEntry;
using config_cache::SparseFile;
using nlohmann::json;

namespace {

long long countStale(const SparseFile &file) {
  return std::count_if(file.entries.begin(), file.entries.end(),
                       [](const SparseEntry &entry) { return isStale(entry); });
}

config::PhaseConfig tileOf(const SparseEntry &entry) {
  config::PhaseConfig tile;
  tile.tileKv = entry.tileKv;
  tile.stages = entry.stages;
  tile.warps = entry.warps;
  return tile;
}

} // namespace

bool isStale(const SparseEntry &entry) { return !entry.isFresh(); }

std::string faultOf(const SparseEntry &entry, const config_cache::DeviceKey &device) {
  const target::Target *target = targetOf(device);
  if (!target)
    return "no kernels that read lists for " + device.text();
  if (entry.isChosen && !isLegal(entry, *target))
    return sparseTileText(tileOf(entry)) + " cannot be compiled";
  return {};
}

std::vector<FoundSparseFile> sparseFilesOf(const std::vector<std::string> &paths) {
  if (paths.empty())
    return config_cache::findSparseFiles(config_cache::defaultPlaces());
  std::vector<FoundSparseFile> files;
  const auto add = [&](const std::string &path) {
    if (config_cache::saysSparse(path))
      files.push_back({config_cache::Origin::Override, path, config_cache::readSparseFile(path)});
  };
  for (const std::string &path : paths) {
    std::error_code none;
    if (!std::filesystem::is_directory(path, none))
      add(path);
    else
      for (const std::string &within : config_cache::deviceFilesIn(path))
        add(within);
  }
  return files;
}

void printListed(const FoundSparseFile &found, std::ostream &out) {
  const SparseFile &file = found.reading.file;
  const long long stale = countStale(file);
  out << std::left << std::setw(11) << originName(found.origin);
  if (found.reading.state == FileState::Good)
    out << file.device.text() << ": "
        << counted(std::ssize(file.entries), "entry of sparse layers", "entries of sparse layers")
        << (stale > 0 ? ", " + std::to_string(stale) + " stale" : "");
  else
    out << stateName(found.reading.state) << ", not used";
  out << "\n           " << found.path << '\n';
}

json listedJson(const FoundSparseFile &found) {
  const SparseFile &file = found.reading.file;
  return {{"format", config_cache::kSparseFormat},
          {"path", found.path},
          {"origin", originName(found.origin)},
          {"state", stateName(found.reading.state)},
          {"device", found.reading.state == FileState::Good ? toJson(file.device) : json(nullptr)},
          {"entries", file.entries.size()},
          {"stale", countStale(file)}};
}

void printShown(const SparseEntry &entry, std::ostream &out) {
  out << "  sparse layers, lists of " << withSeparators(entry.budget) << " tokens by "
      << spec::toString(entry.by) << ": " << rounded(entry.gain(), 2)
      << " times the speed of the rules, on average over "
      << counted(std::ssize(entry.cuts), "number of queries", "numbers of queries") << "; "
      << entry.provenance.date.substr(0, 10) << (isStale(entry) ? "; stale" : "") << "\n      "
      << sparseTileText(tileOf(entry)) << (entry.isChosen ? ", chosen" : ", a package's") << "; "
      << cutsText(entry.cuts) << '\n';
}

json shownJson(const SparseEntry &entry) {
  json object = toJson(entry);
  object["format"] = config_cache::kSparseFormat;
  object["gain"] = entry.gain();
  object["stale"] = isStale(entry);
  return object;
}

bool verifyFile(Context &context, const FoundSparseFile &found) {
  if (found.reading.state != FileState::Good) {
    context.out << found.reading.message << '\n';
    return false;
  }
  const SparseFile &file = found.reading.file;
  bool isRight = file.notes.empty();
  for (const std::string &note : file.notes)
    context.out << note << '\n';
  for (const SparseEntry &entry : file.entries)
    if (const std::string fault = faultOf(entry, file.device); !fault.empty()) {
      context.out << "`" << found.path << "`: `" << keyOf(entry) << "` cannot be used: " << fault << '\n';
      isRight = false;
    }
  isRight &= isNamedRight(context, found.path, found.origin, file.device);
  const long long stale = countStale(file);
  context.out << found.path << ": " << (isRight ? "ok, " : "not ok, ")
              << counted(std::ssize(file.entries), "entry of sparse layers", "entries of sparse layers")
              << " of " << file.device.text() << (stale > 0 ? ", " + std::to_string(stale) + " stale" : "")
              << '\n';
  return isRight;
}

} // namespace deft::cli
