#include "compiler/config/DefaultConfig.h"
#include "runtime/config_cache/Regret.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/exec/Params.h"
#include "runtime/jit/CpuConfig.h"
#include "runtime/jit/Processors.h"
#include "tools/deftc/CacheCommand.h"
#include "tools/deftc/DeviceInput.h"
#include "tools/deftc/Numbers.h"
#include "tools/deftc/RunInput.h"
#include "tuner/session/NamedSamples.h"
#include "tuner/session/SideBySide.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <ostream>

namespace deft::cli {

using config_cache::RegretReport;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

std::string percent(const std::optional<double> &regret) {
  return regret ? rounded(100 * *regret, 1) + " %" : "not timed";
}

void printRegret(Context &context, const RegretReport &report) {
  for (const config_cache::RegretRow &row : report.rows) {
    context.out << keyOf(row.hidden.entry) << ", " << familyName(familyOf(row.hidden.entry.treeClass))
                << '\n';
    for (const config_cache::RegretOffer &offer : row.offers)
      context.out << "  " << config_cache::ruleName(offer.candidate.rule) << ": " << percent(offer.regret)
                  << (offer.candidate.from ? ", " + keyOf(offer.candidate.from->entry) : "") << '\n';
  }
  for (const config_cache::RuleRegret &rule : report.rules) {
    context.out << "rule " << config_cache::ruleName(rule.rule) << ": "
                << counted(rule.offers, "time", "times") << " timed, " << rule.chosen
                << " of them chosen; regret " << percent(rule.median) << " in the median, "
                << percent(rule.worst) << " at worst";
    if (rule.compared > 0)
      context.out << "; at least as fast as the next rule " << rule.atLeastAsFast << " of "
                  << counted(rule.compared, "time", "times");
    context.out << '\n';
  }
  for (const auto *summaries : {&report.distances, &report.steps})
    for (const config_cache::NearbyRegret &one : *summaries)
      context.out << "nearby, " << one.of << ": " << counted(one.offers, "entry", "entries") << ", regret "
                  << percent(one.median) << " in the median, " << percent(one.worst)
                  << " at worst; at least as fast as untuned " << one.beatHeuristic << " of "
                  << counted(one.offers, "time", "times") << '\n';
  if (report.rows.empty())
    context.out << "no entry of this device is fresh\n";
}

struct Options {
  DeviceOptions device;
  std::string input, variant, config, recordsFolder;
  std::vector<std::string> params;
  double limit = config_cache::kNearbyLimit;
  int offers = 1;
  bool asJson = false;
};

/// The trees that `deftc tune` knows, by class.
Result<std::vector<measure::ClassTrees>> knownClasses(const spec::Variant &variant,
                                                      const std::string &recordsFolder) {
  std::map<std::string, measure::ClassTrees> classes;
  config_cache::TreeClassifier classifier;
  for (const char *name : {"all", "rows"}) {
    auto samples = session::namedSamples(name, variant, 0, recordsFolder);
    if (!samples)
      return samples.error();
    for (session::Sample &sample : *samples) {
      const std::string text = classifier.classify(sample.tree).text();
      measure::ClassTrees &of = classes[text];
      of.name = text;
      constexpr std::size_t kMostTrees = 3;
      if (of.trees.size() < kMostTrees)
        of.trees.push_back(std::move(sample.tree));
    }
  }
  std::vector<measure::ClassTrees> list;
  for (auto &[name, trees] : classes)
    list.push_back(std::move(trees));
  return list;
}

/// What times configs of the program on the device, which must be this machine's.
Result<session::SideBySide> openSideBySide(Context &context, const jit::Program &program,
                                           const ChosenDevice &device, const Options &options) {
  auto params = exec::bindParams(program.variant(), options.params);
  if (!params)
    return params.error();
  auto classes = knownClasses(program.variant(), options.recordsFolder);
  if (!classes)
    return classes.error();
  session::SideBySide::Options how;
  Result<std::unique_ptr<measure::Machine>> machine(Error{});
  if (device.target) {
    machine = measure::openCuda(program.variant());
    how.kernels = [&context, &program, target = device.target](const config::Config &config) {
      std::string warning;
      auto kernels = program.cudaKernels(target->major, target->minor, config, warning);
      if (!warning.empty())
        context.err << "warning: " << warning << '\n';
      return kernels;
    };
  } else {
    auto kernel = program.cpuKernel();
    if (!kernel)
      return kernel.error();
    how.estimator = session::Estimator::Fastest; // others run on a host, and only add
    machine = measure::openCpu(program.variant(), std::move(*kernel), device.key.units);
  }
  if (!machine)
    return machine.error();
  if ((*machine)->key() != device.key)
    return Error{ErrorCode::Usage,
                 "this machine is " + (*machine)->key().text() + ", not " + device.key.text(),
                 "without a SPEC nothing is timed"};
  measure::Work work;
  work.variant = program.variant();
  work.params = std::move(*params);
  work.classes = std::move(*classes);
  work.threads = jit::usableProcessors();
  work.sharesCache = device.target != nullptr;
  return session::SideBySide(std::move(work), std::move(*machine), std::move(how));
}

int regret(Context &context, const Options &options) {
  const auto device = chooseDevice(options.device, config_cache::defaultPlaces(options.config));
  if (!device)
    return reportError(context, device.error());
  config_cache::RegretRequest request;
  request.target = device->target;
  request.nearbyLimit = options.limit;
  request.offersOfRule = options.offers;
  request.untuned = [&](const config_cache::VariantSignature &signature) {
    const spec::Variant variant = signature.variant();
    return device->target ? config::defaultConfig(variant, *device->target)
                          : jit::cpuConfig(variant, device->key.units);
  };
  std::optional<jit::Program> program;
  std::optional<session::SideBySide> timed;
  if (!options.input.empty()) {
    auto opened = openProgram(context, options.input, options.variant);
    if (!opened)
      return reportError(context, opened.error());
    program.emplace(std::move(*opened));
    auto sideBySide = openSideBySide(context, *program, *device, options);
    if (!sideBySide)
      return reportError(context, sideBySide.error());
    timed.emplace(std::move(*sideBySide));
    request.isWanted = [&, signature = config_cache::VariantSignature::of(program->variant())](
                           const config_cache::Entry &entry) {
      return entry.signature == signature && timed->hasTreesOf(entry.treeClass);
    };
    request.measure = [&](const config_cache::Entry &entry, const std::vector<config::Config> &configs) {
      return timed->measure(entry, configs);
    };
  }
  const auto report = reportRegret(*loadConfigs(context, options.config, device->key), request);
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
      "regret", "Hide each entry in turn, and say what the rules would choose and cost without it");
  auto options = std::make_shared<Options>();
  command->add_option(
      "SPEC", options->input,
      "Time its entries, on trees that `deftc tune` has by name; without it nothing is timed");
  command->add_option("--variant", options->variant, "The attention, when the file defines several");
  command->add_option("--param", options->params, "NAME=VALUE, where the spec has no default")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  addDeviceOptions(*command, options->device);
  command->add_option("--threads", options->device.threads, "Of the CPU; all by default")
      ->check(CLI::PositiveNumber);
  command->add_option("--workloads", options->recordsFolder, "A folder of recorded workloads");
  command->add_option("--limit", options->limit, "Entries up to this distance count as near")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--offers", options->offers, "Entries of each rule that are timed at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  addConfigOption(*command, options->config);
  command->add_flag("--json", options->asJson, "Print JSON");
  command->footer(
      "Examples:\n  deftc cache regret                (what the entries remember)\n"
      "  deftc cache regret llama3_8b      (timed now, on this machine)\n"
      "  deftc cache regret llama3_8b --limit 5 --offers 5      (are the rules' distances right?)");
  context.onRun(command, [&context, options] { return regret(context, *options); });
}

} // namespace deft::cli
