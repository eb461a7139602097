#include "tools/deftc/cache/CacheCommand.h"

#include "tools/deftc/cache/CacheSparse.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Numbers.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using config_cache::Entry;
using config_cache::FileState;
using config_cache::FoundFile;
using config_cache::FoundSparseFile;
using nlohmann::json;

std::string stateName(FileState state) {
  switch (state) {
  case FileState::Good:
    return "good";
  case FileState::Absent:
    return "absent";
  case FileState::Broken:
    return "broken";
  case FileState::Unreadable:
    return "unreadable";
  case FileState::Untrusted:
    return "untrusted";
  case FileState::Unknown:
    return "of an unknown version";
  }
  return {};
}

bool isStale(const Entry &entry, const config_cache::DeviceKey &device) {
  return !entry.isFresh(device.kind);
}

std::vector<FoundFile> filesOf(const std::vector<std::string> &paths) {
  const config_cache::Places places = config_cache::defaultPlaces();
  if (paths.empty())
    return config_cache::findFiles(places);
  std::vector<FoundFile> files;
  for (const std::string &path : paths)
    for (FoundFile &found : config_cache::findFiles({path, {}, {}}))
      if (found.reading.state != FileState::Broken || !config_cache::saysSparse(found.path))
        files.push_back(std::move(found));
  return files;
}

namespace {

/// The user's own file of a device in a folder of the cache.
support::Result<std::string> ownPath(const std::string &folder, const config_cache::DeviceKey &device) {
  if (folder.empty())
    return support::Error{support::ErrorCode::Environment, "no place for configs: HOME is not set",
                          "set DEFT_CACHE_DIR, or give --output"};
  return folder + "/" + device.fileName();
}

} // namespace

support::Result<std::string> ownConfigsPath(const config_cache::DeviceKey &device) {
  return ownPath(config_cache::defaultPlaces().userFolder, device);
}

support::Result<std::string> ownSparsePath(const config_cache::DeviceKey &device) {
  return ownPath(config_cache::defaultPlaces().userSparse, device);
}

namespace {

constexpr char kCacheFooter[] = R"(Examples:
  deftc cache list
  deftc cache show h200 --variant q32-kv8
  deftc cache verify my_configs.json
  deftc cache merge monday.json tuesday.json -o both.json
  deftc cache merge shard-*.jsonl
  deftc cache prune --stale
  deftc cache kernels list
There are two caches. The first has tuned configs and results for sparse layers: `deftc tune` fills it, `deftc
explain` shows its use, and specs/CONFIGS.md describes the files and the rules. All commands here except `kernels`
manage it, `regret` and `renew` only the configs. The second has compiled kernels: `deftc cache kernels` manages
it, and you may delete it at any time.)";

int list(Context &context, bool asJson) {
  const config_cache::Places places = config_cache::defaultPlaces();
  const std::vector<FoundFile> files = config_cache::findFiles(places);
  json array = json::array();
  for (const FoundFile &found : files) {
    const config_cache::ConfigFile &file = found.reading.file;
    const bool isGood = found.reading.state == FileState::Good;
    const auto stale = std::count_if(file.entries.begin(), file.entries.end(),
                                     [&](const Entry &entry) { return isStale(entry, file.device); });
    const auto cut = std::count_if(file.entries.begin(), file.entries.end(),
                                   [](const Entry &entry) { return !entry.isComplete; });
    if (asJson) {
      array.push_back({{"format", config_cache::kConfigsFormat},
                       {"path", found.path},
                       {"origin", originName(found.origin)},
                       {"state", stateName(found.reading.state)},
                       {"device", isGood ? toJson(file.device) : json(nullptr)},
                       {"entries", file.entries.size()},
                       {"stale", stale},
                       {"cut_short", cut}});
      continue;
    }
    context.out << std::left << std::setw(11) << originName(found.origin)
                << (isGood ? file.device.text() + ": " +
                                 counted(static_cast<long long>(file.entries.size()), "entry", "entries") +
                                 (stale > 0 ? ", " + std::to_string(stale) + " stale" : "") +
                                 (cut > 0 ? ", " + std::to_string(cut) + " cut short" : "")
                           : stateName(found.reading.state) + ", not used")
                << "\n           " << found.path << '\n';
  }
  const std::vector<FoundSparseFile> sparse = sparseFilesOf({});
  for (const FoundSparseFile &found : sparse)
    if (asJson)
      array.push_back(listedJson(found));
    else
      printListed(found, context.out);
  if (asJson)
    context.out << array.dump(2) << '\n';
  else if (files.empty() && sparse.empty())
    context.out << "there are no configs; `deftc tune` makes some\n";
  if (!asJson)
    context.out << "places     " << placesText(places) << "\nkernels    " << compiledKernelsText()
                << "; deftc cache kernels list\n";
  return kExitOk;
}

struct ShowOptions {
  std::string device, variant, family;
  bool asJson = false;
};

/// As `deftc workloads` writes names of families: "multi_level_prompt".
std::string joined(std::string name) {
  std::replace_if(name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

bool isShown(const Entry &entry, const ShowOptions &options) {
  return entry.signature.text().find(options.variant) != std::string::npos &&
         joined(familyName(familyOf(entry.treeClass))).find(joined(options.family)) != std::string::npos;
}

void printEntry(std::ostream &out, const Entry &entry, const config_cache::DeviceKey &device) {
  const config_cache::Measurement &measured = entry.measurement;
  out << "  " << entry.treeClass.text() << ", " << familyName(familyOf(entry.treeClass)) << ": "
      << rounded(measured.tunedUs, 1) << " us"
      << (entry.keepsDefault ? ", the untuned choice stays"
                             : ", untuned " + rounded(measured.untunedUs, 1) + " us, " +
                                   rounded(measured.gain(), 2) + " times as fast")
      << (entry.onlyFor.empty() ? "" : ", for trees like those that were measured") << "; +-"
      << rounded(100 * measured.spread, 1) << " %, " << counted(measured.trees, "tree", "trees")
      << (entry.isComplete ? "" : "; cut short") << (isStale(entry, device) ? "; stale" : "") << "\n      "
      << configText(entry.config) << '\n';
}

/// Of no family of trees; how many.
int showSparse(Context &context, const ShowOptions &options, json &array) {
  int shown = 0;
  if (!options.family.empty())
    return shown;
  for (const FoundSparseFile &found : sparseFilesOf({})) {
    const config_cache::SparseFile &file = found.reading.file;
    if (found.reading.state != FileState::Good || !isNamed(file.device, options.device))
      continue;
    std::string last;
    for (const config_cache::SparseEntry &entry : file.entries) {
      const std::string signature = entry.signature.text();
      if (signature.find(options.variant) == std::string::npos)
        continue;
      ++shown;
      if (options.asJson) {
        json object = shownJson(entry);
        object["device"] = toJson(file.device);
        object["path"] = found.path;
        array.push_back(std::move(object));
        continue;
      }
      if (last.empty())
        context.out << file.device.text() << ", " << originName(found.origin) << ", " << found.path << '\n';
      if (signature != last)
        context.out << signature << '\n';
      last = signature;
      printShown(entry, context.out);
    }
  }
  return shown;
}

int show(Context &context, const ShowOptions &options) {
  json array = json::array();
  int shown = 0;
  for (const FoundFile &found : config_cache::findFiles(config_cache::defaultPlaces())) {
    const config_cache::ConfigFile &file = found.reading.file;
    if (found.reading.state != FileState::Good || !isNamed(file.device, options.device))
      continue;
    std::string last;
    for (const Entry &entry : file.entries) {
      if (!isShown(entry, options))
        continue;
      ++shown;
      if (options.asJson) {
        json object = toJson(entry);
        object["format"] = config_cache::kConfigsFormat;
        object["device"] = toJson(file.device);
        object["path"] = found.path;
        object["stale"] = isStale(entry, file.device);
        array.push_back(std::move(object));
        continue;
      }
      if (last.empty())
        context.out << file.device.text() << ", " << originName(found.origin) << ", " << found.path << '\n';
      if (entry.signature.text() != last)
        context.out << entry.signature.text() << '\n';
      last = entry.signature.text();
      printEntry(context.out, entry, file.device);
    }
  }
  shown += showSparse(context, options, array);
  if (options.asJson)
    context.out << array.dump(2) << '\n';
  else if (shown == 0)
    context.out << "no entry matches\n";
  return kExitOk;
}

void addList(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand("list", "List the files of tuned configs and sparse layers");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "Print JSON");
  command->footer("Example:\n  deftc cache list");
  context.onRun(command, [&context, asJson] { return list(context, *asJson); });
}

void addShow(CLI::App &cache, Context &context) {
  CLI::App *command =
      cache.add_subcommand("show", "Show entries of tuned configs and sparse layers with their gains");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("DEVICE", options->device, "Only entries for devices with this in their name");
  command->add_option("--variant", options->variant,
                      "Only entries for variants with this in their signature");
  command->add_option("--family", options->family, "Only entries for trees of this family, like few-shot");
  command->add_flag("--json", options->asJson, "Print JSON");
  command->footer("Example:\n  deftc cache show h200 --variant q32-kv8 --family few-shot");
  context.onRun(command, [&context, options] { return show(context, *options); });
}

} // namespace

void addCacheCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "cache", "Show, check, merge and prune tuned configs; manage compiled kernels (cache kernels)");
  command->require_subcommand(1);
  addList(*command, context);
  addShow(*command, context);
  addExplainCommand(*command, context);
  addCacheVerify(*command, context);
  addCacheMerge(*command, context);
  addCachePrune(*command, context);
  addCacheRegret(*command, context);
  addCacheRenew(*command, context);
  addCacheKernels(*command, context);
  command->footer(kCacheFooter);
}

} // namespace deft::cli
