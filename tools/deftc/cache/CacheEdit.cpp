#include "runtime/config_cache/FileLock.h"
#include "runtime/config_cache/VariantLegality.h"
#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/cache/CacheSparse.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tuner/session/MergeShards.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <variant>

namespace deft::cli {

using config_cache::ConfigFile;
using config_cache::Entry;
using config_cache::FileState;
using config_cache::FoundFile;
using config_cache::SparseEntry;
using config_cache::SparseFile;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct MergeOptions {
  std::vector<std::string> inputs;
  std::string output;
  bool isPartial = false;
};

/// A file of either kind.
using AnyFile = std::variant<ConfigFile, SparseFile>;

struct Merged {
  AnyFile file;
  std::optional<session::MergedShards> shards; ///< where the inputs are journals
};

const config_cache::DeviceKey &deviceOf(const AnyFile &file) {
  return std::visit([](const auto &one) -> const config_cache::DeviceKey & { return one.device; }, file);
}

std::string textOf(const AnyFile &file) {
  const auto *sparse = std::get_if<SparseFile>(&file);
  return sparse ? formatSparseFile(*sparse) : formatConfigFile(std::get<ConfigFile>(file));
}

/// The file that was read of a path; an error where it is not good.
template <typename Reading>
auto goodOf(Reading reading, const std::string &path) -> Result<decltype(reading.file)> {
  if (reading.state == FileState::Absent)
    return absentConfig(path);
  if (reading.state != FileState::Good)
    return Error{reading.state == FileState::Unreadable ? ErrorCode::Environment : ErrorCode::Diagnostics,
                 reading.message, ""};
  return std::move(reading.file);
}

Result<AnyFile> mergeConfigs(const std::vector<std::string> &inputs) {
  ConfigFile merged;
  bool isFirst = true;
  for (const std::string &input : inputs) {
    const auto file = goodOf(config_cache::readConfigFile(input), input);
    if (!file)
      return file.error();
    auto sum = mergeFiles(isFirst ? *file : merged, *file);
    if (!sum)
      return sum.error();
    merged = std::move(*sum);
    isFirst = false;
  }
  return AnyFile(std::move(merged));
}

Result<AnyFile> mergeSparse(const std::vector<std::string> &inputs) {
  std::vector<SparseFile> files;
  for (const std::string &input : inputs) {
    auto file = goodOf(config_cache::readSparseFile(input), input);
    if (!file)
      return file.error();
    files.push_back(std::move(*file));
  }
  auto merged = mergeSparseFiles(files);
  return merged ? Result<AnyFile>(std::move(*merged)) : merged.error();
}

Result<AnyFile> mergeFilesOf(const std::vector<std::string> &inputs) {
  const auto sparse = std::find_if(inputs.begin(), inputs.end(), config_cache::saysSparse),
             other = std::find_if_not(inputs.begin(), inputs.end(), config_cache::saysSparse);
  if (sparse == inputs.end())
    return mergeConfigs(inputs);
  if (other == inputs.end())
    return mergeSparse(inputs);
  if (std::error_code none; !std::filesystem::exists(*other, none))
    return absentConfig(*other);
  return Error{ErrorCode::Usage, "`" + *sparse + "` is of sparse layers, `" + *other + "` is not",
               "merge files of one kind"};
}

Result<Merged> mergeJournals(const MergeOptions &options) {
  for (const std::string &input : options.inputs)
    if (std::error_code none; !std::filesystem::exists(input, none))
      return Error{ErrorCode::Environment, "there is no journal `" + input + "`", ""};
  auto shards = session::mergeShards(options.inputs, options.isPartial);
  if (!shards)
    return shards.error();
  ConfigFile file;
  file.device = shards->device;
  file.entries = shards->entries();
  return Merged{std::move(file), std::move(*shards)};
}

Result<Merged> mergeAll(const MergeOptions &options) {
  const std::vector<std::string> &inputs = options.inputs;
  const auto journal = std::find_if(inputs.begin(), inputs.end(), session::saysJournal),
             noJournal = std::find_if_not(inputs.begin(), inputs.end(), session::saysJournal);
  if (journal != inputs.end()) {
    if (std::error_code none; noJournal != inputs.end() && std::filesystem::exists(*noJournal, none))
      return Error{ErrorCode::Usage,
                   "`" + *noJournal + "` is no journal of tuning, but `" + *journal + "` is one",
                   "merge files of one kind"};
    return mergeJournals(options);
  }
  if (options.isPartial)
    return Error{ErrorCode::Usage, "--partial is about journals of tuning", ""};
  auto file = mergeFilesOf(inputs);
  if (!file)
    return file.error();
  return Merged{std::move(*file), std::nullopt};
}

bool isThereAsFile(const std::string &path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

/// What is there and no such file, or one of another version or device, is not overwritten.
Result<void> checkReplaceable(Context &context, const std::string &path, const AnyFile &file) {
  if (auto free = checkOutput(context, path); !free)
    return free;
  if (path == "-" || !isThereAsFile(path))
    return {};
  return std::holds_alternative<SparseFile>(file)
             ? config_cache::checkSparseMergeable(path, config_cache::Owner::User, deviceOf(file))
             : config_cache::checkMergeable(path, config_cache::Owner::User, deviceOf(file));
}

/// What is to be written to the output that is named, if one is.
Result<Merged> mergeFor(Context &context, const MergeOptions &options) {
  auto merged = mergeAll(options);
  if (merged)
    if (auto replaceable = checkReplaceable(context, options.output, merged->file); !replaceable)
      return replaceable.error();
  return merged;
}

void printShards(Context &context, const session::MergedShards &shards, bool isOutFree) {
  for (const std::string &warning : shards.warnings)
    context.err << "warning: " << warning << '\n';
  if (isOutFree)
    context.out << counted(shards.shards, "shard", "shards") << " of one session, " << shards.entries().size()
                << " of " << counted(std::ssize(shards.classes), "class", "classes") << " with a result, "
                << counted(shards.measured, "measurement", "measurements") << '\n';
}

/// To a file or the output alone, or into the user's own.
int merge(Context &context, const MergeOptions &options) {
  // The inputs are not told to context.files: what is merged holds all that was in them, so that
  // `deftc cache merge FILE -o FILE` is a way to put a file in order.
  auto merged = mergeFor(context, options);
  if (!merged)
    return reportError(context, merged.error());
  if (options.output != "-" && isThereAsFile(options.output)) {
    // Others may be writing it, and it may be one of the inputs.
    const auto lock = config_cache::FileLock::ofFile(options.output);
    if (!lock)
      return reportError(context, lock.error());
    merged = mergeFor(context, options);
    if (!merged)
      return reportError(context, merged.error());
    if (merged->shards)
      printShards(context, *merged->shards, true);
    return writeOutput(context, options.output, textOf(merged->file));
  }
  if (merged->shards)
    printShards(context, *merged->shards, options.output != "-");
  if (!options.output.empty())
    return writeOutput(context, options.output, textOf(merged->file));
  const auto *sparse = std::get_if<SparseFile>(&merged->file);
  const auto path = sparse ? ownSparsePath(sparse->device) : ownConfigsPath(deviceOf(merged->file));
  if (!path)
    return reportError(context, path.error());
  constexpr auto kOwn = config_cache::Owner::Deftc;
  const auto report = sparse ? config_cache::mergeIntoSparse(*path, kOwn, *sparse)
                             : mergeWrite(*path, kOwn, std::get<ConfigFile>(merged->file));
  if (!report)
    return reportError(context, report.error());
  context.out << *path << ": " << counted(report->added, "entry", "entries") << " added, " << report->replaced
              << " replaced, " << report->unchanged << " already there or better\n";
  if (!report->setAside.empty())
    context.out << "the broken file that was there is kept in " << report->setAside << '\n';
  return kExitOk;
}

struct PruneOptions {
  std::vector<std::string> paths;
  bool stale = false, illegal = false, all = false, isTrial = false;
  std::string variant;
};

bool isLegal(const Entry &entry, const config_cache::DeviceKey &device) {
  const spec::Variant variant = entry.signature.variant();
  return config_cache::legalityFor(variant, targetOf(device))(entry.config).ok();
}

bool isUnwanted(const Entry &entry, const config_cache::DeviceKey &device, const PruneOptions &options) {
  return options.all || (options.stale && isStale(entry, device)) ||
         (options.illegal && !isLegal(entry, device));
}

bool isUnwanted(const SparseEntry &entry, const config_cache::DeviceKey &device,
                const PruneOptions &options) {
  return options.all || (options.stale && isStale(entry)) ||
         (options.illegal && !faultOf(entry, device).empty());
}

Result<int> removeFrom(const std::string &path, const std::function<bool(const Entry &)> &which) {
  return config_cache::removeEntries(path, which);
}

Result<int> removeFrom(const std::string &path, const std::function<bool(const SparseEntry &)> &which) {
  return config_cache::removeSparseEntries(path, which);
}

/// One file of either kind; the exit code.
template <typename OneEntry, typename Found>
int pruneFile(Context &context, const Found &found, const PruneOptions &options) {
  if (found.reading.state == FileState::Absent)
    return reportError(context, absentConfig(found.path));
  if (found.reading.state != FileState::Good) {
    context.err << "warning: " << found.reading.message << "; it is left as it is\n";
    return options.paths.empty() ? kExitOk : kExitDiagnostics;
  }
  const auto &file = found.reading.file;
  const std::function<bool(const OneEntry &)> goes = [&](const OneEntry &entry) {
    return entry.signature.text().find(options.variant) != std::string::npos &&
           isUnwanted(entry, file.device, options);
  };
  const auto removed =
      options.isTrial
          ? Result<int>(static_cast<int>(std::count_if(file.entries.begin(), file.entries.end(), goes)))
          : removeFrom(found.path, goes);
  if (!removed)
    return reportError(context, removed.error());
  context.out << found.path << ": " << counted(*removed, "entry", "entries")
              << (options.isTrial ? " would be removed, " : " removed, ")
              << static_cast<long long>(file.entries.size()) - *removed << " left";
  if (const auto kept = static_cast<long long>(file.kept.size()); kept > 0)
    context.out << ", beside " << kept << " that " << (kept == 1 ? "is" : "are") << " not understood";
  context.out << '\n';
  return kExitOk;
}

int prune(Context &context, const PruneOptions &options) {
  if (!options.stale && !options.illegal && !options.all)
    return reportError(context, {ErrorCode::Usage, "the entries to remove are not given",
                                 "give --stale, --illegal or --all"});
  int code = kExitOk;
  // What was installed, or is named by a variable, is not ours to change.
  const auto isOurs = [&](const auto &found) {
    return !options.paths.empty() || found.origin == config_cache::Origin::User;
  };
  for (const FoundFile &found : filesOf(options.paths))
    if (isOurs(found))
      code = std::max(code, pruneFile<Entry>(context, found, options));
  for (const config_cache::FoundSparseFile &found : sparseFilesOf(options.paths))
    if (isOurs(found))
      code = std::max(code, pruneFile<SparseEntry>(context, found, options));
  return code;
}

} // namespace

void addCacheMerge(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand(
      "merge",
      "Join files of tuned configs, of sparse layers, or journals of shards, of one device, in any order");
  auto options = std::make_shared<MergeOptions>();
  command->add_option("FILE", options->inputs, "The files")->required();
  command->add_option("-o,--output", options->output,
                      "Write them to this file, - for the output; by default they go into your own");
  command->add_flag("--partial", options->isPartial,
                    "Merge journals even if shards are missing or unfinished");
  command->footer("Examples:\n  deftc cache merge monday.json tuesday.json -o both.json\n"
                  "  deftc cache merge shard-*.jsonl     (after deftc tune --shard I/N, for each I)");
  context.onRun(command, [&context, options] { return merge(context, *options); });
}

void addCachePrune(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand("prune", "Remove entries of tuned configs and of sparse layers");
  auto options = std::make_shared<PruneOptions>();
  command->add_option("PATH", options->paths, "Files, or folders of them; by default your own");
  command->add_flag("--stale", options->stale, "Entries that were timed with other kernels");
  command->add_flag("--illegal", options->illegal, "Entries that cannot be used");
  command->add_flag("--all", options->all, "All");
  command->add_option("--variant", options->variant,
                      "Only entries for variants with this in their signature");
  command->add_flag("--dry-run", options->isTrial, "Only count");
  command->footer("Example:\n  deftc cache prune --stale --dry-run");
  context.onRun(command, [&context, options] { return prune(context, *options); });
}

} // namespace deft::cli
