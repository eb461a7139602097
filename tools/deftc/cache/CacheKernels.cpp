#include "compiler/support/GuardedFile.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/module_cache/StoredKernels.h"
#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Progress.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ctime>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using module_cache::StoredKernel;
using nlohmann::json;
using support::ErrorCode;

namespace {

std::string dateOf(std::time_t time) {
  std::tm parts{};
  char text[32];
  ::gmtime_r(&time, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

double bytesOfAll(const std::vector<StoredKernel> &kernels) {
  double bytes = 0;
  for (const StoredKernel &kernel : kernels)
    bytes += static_cast<double>(kernel.bytes);
  return bytes;
}

int listKernels(Context &context, bool asJson) {
  const auto cache = module_cache::defaultCacheFolder();
  if (!cache)
    return reportError(context, cache.error());
  const std::string folder = module_cache::kernelsFolder(*cache);
  const std::vector<StoredKernel> kernels = module_cache::storedKernels(folder);
  if (asJson) {
    json array = json::array();
    for (const StoredKernel &kernel : kernels)
      array.push_back({{"key", kernel.key},
                       {"what", kernel.what},
                       {"registers", kernel.registers},
                       {"bytes", kernel.bytes},
                       {"stored", dateOf(kernel.stored)}});
    context.out << json{{"folder", folder}, {"kernels", std::move(array)}}.dump(2) << '\n';
    return kExitOk;
  }
  context.out << compiledKernelsText() << '\n';
  for (const StoredKernel &kernel : kernels)
    context.out << dateOf(kernel.stored) << std::right << std::setw(6) << kernel.registers << " registers"
                << std::setw(9) << bytesOf(static_cast<double>(kernel.bytes)) << "  "
                << kernel.key.substr(0, 12) << "  " << kernel.what << '\n';
  return kExitOk;
}

struct PruneKernelsOptions {
  int olderThanDays = -1;
  bool broken = false, all = false, isTrial = false;
};

int pruneKernels(Context &context, const PruneKernelsOptions &options) {
  if (options.olderThanDays < 0 && !options.broken && !options.all)
    return reportError(context, {ErrorCode::Usage, "the kernels to remove are not given",
                                 "give --older-than DAYS, --broken or --all"});
  const auto place = module_cache::defaultCacheFolder();
  if (!place)
    return reportError(context, place.error());
  const std::string folder = module_cache::kernelsFolder(*place);
  const std::vector<StoredKernel> kernels = module_cache::storedKernels(folder);
  std::unique_ptr<module_cache::CubinCache> cache;
  if (options.broken && !kernels.empty()) {
    cache = module_cache::CubinCache::open(*place);
    // Of a folder that is not this user's alone no kernel is read, however whole.
    if (const std::string fault = support::faultOfPrivateFolder(folder); !fault.empty())
      return reportError(context,
                         {ErrorCode::Environment, "kernels in `" + folder + "` cannot be listed: " + fault,
                          "fix that, or give --all"});
  }
  constexpr double kDay = 24 * 60 * 60;
  const std::time_t now = std::time(nullptr);
  const auto isUnwanted = [&](const StoredKernel &kernel) {
    return options.all ||
           (options.olderThanDays >= 0 && std::difftime(now, kernel.stored) > kDay * options.olderThanDays) ||
           (cache && !cache->find(kernel.key));
  };
  Progress progress(context, "reading kernels");
  std::vector<StoredKernel> removed;
  long long seen = 0;
  for (const StoredKernel &kernel : kernels) {
    progress.at(seen++, std::ssize(kernels));
    if (!isUnwanted(kernel))
      continue;
    if (!options.isTrial)
      if (auto done = module_cache::removeKernel(folder, kernel.key); !done)
        return reportError(context, done.error());
    removed.push_back(kernel);
  }
  context.out << folder << ": " << counted(std::ssize(removed), "kernel", "kernels") << " of "
              << bytesOf(bytesOfAll(removed)) << (options.isTrial ? " would be removed, " : " removed, ")
              << std::ssize(kernels) - std::ssize(removed) << " left\n";
  return kExitOk;
}

} // namespace

std::string compiledKernelsText() {
  const auto cache = module_cache::defaultCacheFolder();
  if (!cache)
    return "no place for compiled kernels: " + cache.error().message;
  const std::string folder = module_cache::kernelsFolder(*cache);
  const std::vector<StoredKernel> kernels = module_cache::storedKernels(folder);
  return counted(std::ssize(kernels), "compiled kernel", "compiled kernels") + ", " +
         bytesOf(bytesOfAll(kernels)) + ", in " + folder;
}

void addCacheKernels(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand("kernels", "Compiled kernels, which are rebuilt when needed");
  command->require_subcommand(1);
  command->footer("Examples:\n  deftc cache kernels list\n  deftc cache kernels prune --older-than 30");

  CLI::App *listing = command->add_subcommand("list", "List compiled kernels, newest first");
  auto asJson = std::make_shared<bool>(false);
  listing->add_flag("--json", *asJson, "Print JSON");
  listing->footer("Example:\n  deftc cache kernels list");
  context.onRun(listing, [&context, asJson] { return listKernels(context, *asJson); });

  CLI::App *pruning = command->add_subcommand("prune", "Remove compiled kernels");
  auto options = std::make_shared<PruneKernelsOptions>();
  pruning
      ->add_option("--older-than", options->olderThanDays,
                   "Kernels that were compiled at least this many days ago")
      ->type_name("DAYS")
      ->check(atLeast(0));
  pruning->add_flag("--broken", options->broken, "Kernels with missing or wrong checksums");
  pruning->add_flag("--all", options->all, "All");
  pruning->add_flag("--dry-run", options->isTrial, "Only count");
  pruning->footer("Example:\n  deftc cache kernels prune --older-than 30 --dry-run");
  context.onRun(pruning, [&context, options] { return pruneKernels(context, *options); });
}

} // namespace deft::cli
