#include "runtime/config_cache/FileLock.h"
#include "runtime/config_cache/VariantLegality.h"
#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>

namespace deft::cli {

using config_cache::ConfigFile;
using config_cache::Entry;
using config_cache::FileState;
using config_cache::FoundFile;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct MergeOptions {
  std::vector<std::string> inputs;
  std::string output;
};

Result<ConfigFile> mergeAll(const std::vector<std::string> &inputs) {
  ConfigFile merged;
  bool isFirst = true;
  for (const std::string &input : inputs) {
    const config_cache::FileReading reading = config_cache::readConfigFile(input);
    if (reading.state == FileState::Absent)
      return absentConfig(input);
    if (reading.state == FileState::Unreadable)
      return Error{ErrorCode::Environment, reading.message, ""};
    if (reading.state != FileState::Good)
      return Error{ErrorCode::Diagnostics, reading.message, ""};
    auto sum = mergeFiles(isFirst ? reading.file : merged, reading.file);
    if (!sum)
      return sum.error();
    merged = std::move(*sum);
    isFirst = false;
  }
  return merged;
}

bool isThereAsFile(const std::string &path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

/// What is there and no such file, or one of another version or device, is not overwritten.
Result<void> checkReplaceable(Context &context, const std::string &path,
                              const config_cache::DeviceKey &device) {
  if (auto free = checkOutput(context, path); !free)
    return free;
  return path != "-" && isThereAsFile(path)
             ? config_cache::checkMergeable(path, config_cache::Place::Named, device)
             : Result<void>();
}

/// What is to be written to the output that is named, if one is.
Result<ConfigFile> mergeFor(Context &context, const MergeOptions &options) {
  auto merged = mergeAll(options.inputs);
  if (merged)
    if (auto replaceable = checkReplaceable(context, options.output, merged->device); !replaceable)
      return replaceable.error();
  return merged;
}

/// To a file or the output alone, or into the user's own configs.
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
    return merged ? writeOutput(context, options.output, formatConfigFile(*merged))
                  : reportError(context, merged.error());
  }
  if (!options.output.empty())
    return writeOutput(context, options.output, formatConfigFile(*merged));
  const auto path = ownConfigsPath(merged->device);
  if (!path)
    return reportError(context, path.error());
  const auto report = mergeWrite(*path, config_cache::Place::Cache, *merged);
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

int prune(Context &context, const PruneOptions &options) {
  if (!options.stale && !options.illegal && !options.all)
    return reportError(
        context, {ErrorCode::Usage, "it is not said what is to go", "give --stale, --illegal or --all"});
  int code = kExitOk;
  for (const FoundFile &found : filesOf(options.paths)) {
    if (options.paths.empty() && found.origin != config_cache::Origin::User)
      continue; // what was installed, or is named by a variable, is not ours to change
    if (found.reading.state == FileState::Absent) {
      code = reportError(context, absentConfig(found.path));
      continue;
    }
    if (found.reading.state != FileState::Good) {
      context.err << "warning: " << found.reading.message << "; it is left as it is\n";
      if (!options.paths.empty())
        code = std::max<int>(code, kExitDiagnostics);
      continue;
    }
    const config_cache::DeviceKey &device = found.reading.file.device;
    const auto isUnwanted = [&](const Entry &entry) {
      return entry.signature.text().find(options.variant) != std::string::npos &&
             (options.all || (options.stale && isStale(entry, device)) ||
              (options.illegal && !isLegal(entry, device)));
    };
    const std::vector<Entry> &entries = found.reading.file.entries;
    const auto removed =
        options.isTrial
            ? Result<int>(static_cast<int>(std::count_if(entries.begin(), entries.end(), isUnwanted)))
            : config_cache::removeEntries(found.path, isUnwanted);
    if (!removed) {
      code = reportError(context, removed.error());
      continue;
    }
    context.out << found.path << ": " << counted(*removed, "entry", "entries")
                << (options.isTrial ? " would be removed, " : " removed, ")
                << static_cast<long long>(entries.size()) - *removed << " left";
    if (const auto kept = static_cast<long long>(found.reading.file.kept.size()); kept > 0)
      context.out << ", beside " << kept << " that " << (kept == 1 ? "is" : "are") << " not understood";
    context.out << '\n';
  }
  return code;
}

} // namespace

void addCacheMerge(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand(
      "merge", "Join files of tuned configs of one device; the result does not depend on their order");
  auto options = std::make_shared<MergeOptions>();
  command->add_option("FILE", options->inputs, "The files")->required();
  command->add_option("-o,--output", options->output,
                      "Write them to this file, - for the output; by default they go into your own configs");
  command->footer("Example:\n  deftc cache merge monday.json tuesday.json -o both.json");
  context.onRun(command, [&context, options] { return merge(context, *options); });
}

void addCachePrune(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand("prune", "Remove entries of tuned configs");
  auto options = std::make_shared<PruneOptions>();
  command->add_option("PATH", options->paths, "Files, or folders of them; by default your own configs");
  command->add_flag("--stale", options->stale, "Those that were timed with other kernels");
  command->add_flag("--illegal", options->illegal, "Those that cannot be used");
  command->add_flag("--all", options->all, "All");
  command->add_option("--variant", options->variant,
                      "Of them, only of variants with this in their signature");
  command->add_flag("--dry-run", options->isTrial, "Only count");
  command->footer("Example:\n  deftc cache prune --stale --dry-run");
  context.onRun(command, [&context, options] { return prune(context, *options); });
}

} // namespace deft::cli
