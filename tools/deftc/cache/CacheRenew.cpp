#include "runtime/config_cache/VariantLegality.h"
#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/cache/CacheSparse.h"
#include "tools/deftc/cache/EntryTiming.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Numbers.h"
#include "tuner/regret/Renew.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <ostream>
#include <set>

namespace deft::cli {

using config_cache::Entry;
using config_cache::LoadedEntry;
using support::Result;

namespace {

constexpr int kNearEntries = 3; ///< whose configs are raced beside an entry's own

struct RenewOptions {
  EntryTimingOptions entries;
  std::string output;
  bool isTrial = false;
};

/// Where renewed entries go: a file of that name, or the user's own for the device.
struct Destination {
  std::string path;
  config_cache::Owner owner = config_cache::Owner::User;
};

Result<Destination> destinationOf(const RenewOptions &options, const config_cache::DeviceKey &device) {
  Destination to{options.output, config_cache::Owner::User};
  if (to.path.empty()) {
    auto own = ownConfigsPath(device);
    if (!own)
      return own.error();
    to = {std::move(*own), config_cache::Owner::Deftc};
  }
  if (auto mergeable = config_cache::checkMergeable(to.path, to.owner, device); !mergeable)
    return mergeable.error();
  return to;
}

/// The program's entries that other kernels were timed for and that are still legal: those that are used,
/// once each.
struct StaleEntries {
  std::set<std::string> legal;
  int illegal = 0;

  explicit StaleEntries(const EntryTiming &timing) {
    const auto signature = config_cache::VariantSignature::of(timing.program()->variant());
    const auto isLegal = config_cache::legalityFor(timing.program()->variant(), timing.device().target);
    std::set<std::string> seen;
    for (const LoadedEntry &loaded : timing.configs().entries()) {
      if (loaded.device != timing.device().key || loaded.entry.signature != signature ||
          !seen.insert(keyOf(loaded.entry)).second || !isStale(loaded.entry, loaded.device))
        continue;
      if (isLegal(loaded.entry.config))
        legal.insert(keyOf(loaded.entry));
      else
        ++illegal;
    }
  }
};

void print(Context &context, const regret::Renewal &renewal) {
  const Entry &entry = renewal.entry;
  context.out << keyOf(entry) << ", " << familyName(familyOf(entry.treeClass)) << ": ";
  if (entry.keepsDefault)
    context.out << "nothing is clearly faster than the untuned choice";
  else
    context.out << rounded(entry.measurement.gain(), 2) << " times as fast as the untuned choice"
                << (renewal.isOwn ? "" : " with the config of a nearby entry");
  context.out << " (" << rounded(renewal.before, 2) << " when it was tuned)\n";
}

/// Entries of sparse layers are not timed again one by one: a new search takes no longer.
void tellStaleSparse(Context &context, const EntryTiming &timing) {
  const spec::Variant &variant = timing.program()->variant();
  if (!variant.select || !timing.device().target)
    return;
  const auto found = config_cache::findSparse(config_cache::defaultPlaces(), timing.device().key);
  const std::vector<config_cache::LoadedSparseEntry> &entries = found.tuning.entries();
  const auto stale = std::count_if(entries.begin(), entries.end(), [&](const auto &loaded) {
    return loaded.entry.isOf(variant) && isStale(loaded.entry);
  });
  if (stale > 0)
    context.out << counted(stale, "entry of sparse layers is stale", "entries of sparse layers are stale")
                << ": `deftc tune SPEC --sparse` finds them again\n";
}

int renewCommand(Context &context, const RenewOptions &options) {
  const auto timing = EntryTiming::open(context, options.entries);
  if (!timing)
    return reportError(context, timing.error());
  const auto to = destinationOf(options, timing->device().key);
  if (!to)
    return reportError(context, to.error());
  const StaleEntries stale(*timing);
  tellStaleSparse(context, *timing);
  if (stale.legal.empty()) {
    context.out << "no entry of " << timing->program()->variant().name << " for "
                << timing->device().key.text() << " is stale" << (stale.illegal > 0 ? " and can be used" : "")
                << '\n';
    return kExitOk;
  }
  regret::RegretRequest request;
  request.withStale = true;
  request.offersOfRule = kNearEntries;
  request.isWanted = [&](const Entry &entry) { return stale.legal.contains(keyOf(entry)); };
  const auto report = timing->report(context, request);
  if (!report)
    return reportError(context, report.error());
  const auto renewals = regret::renew(
      *report, {DEFT_VERSION,
                config_cache::kernelHash(timing->device().key.kind, timing->program()->variant().tensors),
                config_cache::timestamp(),
                report->driver,
                {}});
  std::vector<Entry> entries;
  int own = 0, untuned = 0;
  for (const regret::Renewal &renewal : renewals) {
    print(context, renewal);
    entries.push_back(renewal.entry);
    own += renewal.isOwn;
    untuned += renewal.entry.keepsDefault;
  }
  if (!options.isTrial && !entries.empty())
    if (const auto written = config_cache::mergeWrite(to->path, to->owner, timing->device().key, entries);
        !written)
      return reportError(context, written.error());
  const auto renewed = static_cast<long long>(entries.size());
  context.out << counted(renewed, "entry", "entries")
              << (options.isTrial ? " would be renewed in " : " renewed in ") << to->path << ": " << own
              << " as they were, " << renewed - own - untuned << " with a near one's config, " << untuned
              << " keep the untuned choice\n";
  if (const auto left = static_cast<long long>(stale.legal.size()) - renewed; left > 0)
    context.out << counted(left, "entry", "entries")
                << " of trees that have no name here: `deftc tune` finds them again\n";
  if (stale.illegal > 0)
    context.out << counted(stale.illegal, "entry", "entries") << " that today's kernels do not support: "
                << "`deftc cache prune --illegal` removes them\n";
  return kExitOk;
}

} // namespace

void addCacheRenew(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand("renew", "Time entries of older kernels again, against the "
                                                    "untuned choice and similar entries, without a search");
  auto options = std::make_shared<RenewOptions>();
  command
      ->add_option("SPEC", options->entries.input,
                   "The spec of the entries; on trees that `deftc tune` knows by name")
      ->type_name(kSpecOrFile)
      ->required();
  addEntryTimingOptions(*command, options->entries);
  command
      ->add_option("-o,--output", options->output,
                   "Write them to this file of configs; by default into your own configs")
      ->check(keptFile());
  command->add_flag("--dry-run", options->isTrial, "Only time and report");
  command->footer("After an update of deftc, tuned entries may be stale, and fewer rules use them.\n"
                  "Examples:\n  deftc cache renew llama3_8b\n  deftc cache renew llama3_8b --dry-run");
  context.onRun(command, [&context, options] { return renewCommand(context, *options); });
}

} // namespace deft::cli
