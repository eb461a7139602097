#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/cache/EntryTiming.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Numbers.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <optional>
#include <ostream>

namespace deft::cli {

namespace {

std::string regretText(const std::optional<double> &regret) {
  return regret ? rounded(100 * *regret, 1) + " %" : "not timed";
}

void printRegret(Context &context, const regret::RegretReport &report) {
  for (const regret::RegretRow &row : report.rows) {
    context.out << keyOf(row.hidden.entry) << ", " << familyName(familyOf(row.hidden.entry.treeClass))
                << (row.isStale ? ", stale" : "");
    const std::optional<double> untunedUs = row.offers.back().us;
    if (row.us && untunedUs)
      context.out << ": " << rounded(*row.us, 1) << " us, " << rounded(*row.us / *untunedUs, 3)
                  << " of the untuned choice's";
    context.out << '\n';
    for (const regret::RegretOffer &offer : row.offers)
      context.out << "  " << config_cache::ruleName(offer.candidate.rule) << ": " << regretText(offer.regret)
                  << (offer.candidate.from ? ", " + keyOf(offer.candidate.from->entry) : "") << '\n';
  }
  for (const regret::RuleRegret &rule : report.rules) {
    context.out << "rule " << config_cache::ruleName(rule.rule) << ": "
                << counted(rule.offers, "time", "times") << " timed, " << rule.chosen
                << " of them chosen; regret " << regretText(rule.median) << " in the median, "
                << regretText(rule.worst) << " at worst";
    if (rule.compared > 0)
      context.out << "; at least as fast as the next rule " << rule.atLeastAsFast << " of "
                  << counted(rule.compared, "time", "times");
    context.out << '\n';
  }
  for (const auto *summaries : {&report.distances, &report.steps})
    for (const regret::NearbyRegret &one : *summaries)
      context.out << "nearby, " << one.of << ": " << counted(one.offers, "entry", "entries") << ", regret "
                  << regretText(one.median) << " in the median, " << regretText(one.worst)
                  << " at worst; at least as fast as untuned " << one.beatHeuristic << " of "
                  << counted(one.offers, "time", "times") << '\n';
  for (const regret::OrderRegret &order : report.orders)
    context.out << order.of << ": " << rounded(order.mean, 3) << " of the untuned choice's time on average, "
                << rounded(order.worst, 3) << " at worst; used for " << order.chosen << " of "
                << counted(order.rows, "tree", "trees") << '\n';
  if (report.rows.empty())
    context.out << "this device has no fresh entry for named trees\n";
}

struct RegretOptions {
  EntryTimingOptions entries;
  double limit = config_cache::kNearbyLimit;
  int offers = 1;
  bool withStale = false, asJson = false;
};

int regretCommand(Context &context, const RegretOptions &options) {
  const auto entries = EntryTiming::open(context, options.entries);
  if (!entries)
    return reportError(context, entries.error());
  regret::RegretRequest request;
  request.nearbyLimit = options.limit;
  request.offersOfRule = options.offers;
  request.withStale = options.withStale;
  const auto report = entries->report(context, request);
  if (!report)
    return reportError(context, report.error());
  if (options.asJson)
    context.out << toJson(*report).dump(2) << '\n';
  else
    printRegret(context, *report);
  return kExitOk;
}

} // namespace

void addCacheRegret(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand(
      "regret", "Hide each entry in turn and show the rules' choice and its cost without it");
  auto options = std::make_shared<RegretOptions>();
  command
      ->add_option(
          "SPEC", options->entries.input,
          "Time this spec's entries, on trees that `deftc tune` knows by name; without it nothing is timed")
      ->type_name(kSpecOrFile);
  addEntryTimingOptions(*command, options->entries);
  command->add_option("--limit", options->limit, "Entries up to this distance count as near")
      ->check(notNegative())
      ->capture_default_str();
  command->add_option("--offers", options->offers, "Most entries to time for each rule")
      ->check(atLeast(1))
      ->capture_default_str();
  command->add_flag("--held-out", options->entries.timing.isHeldOut,
                    "Time on other trees of the same classes");
  command->add_flag("--stale", options->withStale, "Also hide entries of older kernels, and offer near ones");
  command->add_flag("--json", options->asJson, "Print JSON");
  command->footer(
      "Examples:\n  deftc cache regret                (what the entries remember)\n"
      "  deftc cache regret llama3_8b      (timed now, on this machine)\n"
      "  deftc cache regret llama3_8b --limit 5 --offers 5      (are the rules' distances right?)\n"
      "  deftc cache regret llama3_8b --held-out      (do entries also pay on other trees?)");
  context.onRun(command, [&context, options] { return regretCommand(context, *options); });
}

} // namespace deft::cli
