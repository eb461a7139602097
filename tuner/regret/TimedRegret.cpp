#include "tuner/regret/TimedRegret.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/cpu/Processors.h"
#include "tuner/measure/CompileService.h"
#include "tuner/measure/MeasureService.h"
#include "tuner/session/CompilePool.h"
#include "tuner/session/NamedSamples.h"
#include "tuner/session/SideBySide.h"
#include "tuner/workload/Similar.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace deft::regret {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// At most `most` similar trees of the same class, near and far in turn. Similar trees of other classes are
/// skipped.
std::vector<tree::KvTree> othersLike(const std::vector<tree::KvTree> &trees, const std::string &treeClass,
                                     const plan::Reach &reach, int most) {
  constexpr std::uint64_t kMostTries = 60, kFirst = 2000; // not those that sessions hold out
  config_cache::TreeClassifier classifier(reach);
  std::vector<tree::KvTree> others;
  for (std::uint64_t i = 0; i < kMostTries && static_cast<int>(others.size()) < most; ++i)
    if (tree::KvTree other =
            workload::similarTree(trees[i / 2 % trees.size()], workload::mixedSeed(kFirst + i));
        classifier.classify(other).text() == treeClass)
      others.push_back(std::move(other));
  return others;
}

/// The trees of the program's entries, and a machine that times configs on them.
class Timing {
public:
  /// Null `target`: the processor.
  static Result<Timing> make(const program::Program &program, const config_cache::DeviceKey &device,
                             const target::Target *target,
                             const std::vector<const config_cache::Entry *> &entries,
                             const TimingOptions &options);

  /// None: no trees are known.
  std::vector<const tree::KvTree *> treesOf(const config_cache::Entry &entry) const;
  /// Coordinates of the named trees in the entry's class: these or similar trees are timed.
  std::vector<config_cache::Coordinates> placesOf(const config_cache::Entry &entry) const;
  /// Opens the machine, which must be the device, with kernels for all of these.
  Result<void> open(const std::vector<config::Config> &configs);
  /// What the mask shows with the timed parameters.
  plan::Reach reach() const { return exec::reachOf(work_.variant, work_.params); }
  /// The machine's driver, once the machine is open.
  const std::string &driver() const { return driver_; }
  Result<std::vector<double>> measure(const config_cache::Entry &entry, int tree,
                                      const std::vector<config::Config> &configs) {
    return timed_->measure(entry.treeClass.text(), static_cast<std::size_t>(tree), configs);
  }

private:
  Timing(const program::Program &program, const config_cache::DeviceKey &device, const target::Target *target)
      : program_(&program), device_(device), target_(target) {}
  Result<void> collectTrees(const std::vector<const config_cache::Entry *> &entries,
                            const TimingOptions &options);
  Result<void> compile(const std::vector<config::Config> &configs);

  const program::Program *program_;
  config_cache::DeviceKey device_;
  const target::Target *target_;
  measure::Work work_;
  std::map<std::string, std::vector<config_cache::Coordinates>> places_; ///< for each class
  std::optional<codegen::cuda::VariantSource> source_;
  std::unique_ptr<session::CompilePool> kernels_;
  std::optional<session::SideBySide> timed_;
  std::string driver_;
};

Result<Timing> Timing::make(const program::Program &program, const config_cache::DeviceKey &device,
                            const target::Target *target,
                            const std::vector<const config_cache::Entry *> &entries,
                            const TimingOptions &options) {
  Timing timing(program, device, target);
  auto params = exec::bindParams(program.variant(), options.params);
  if (!params)
    return params.error();
  timing.work_.variant = program.variant();
  timing.work_.params = std::move(*params);
  timing.work_.threads = exec::usableProcessors();
  timing.work_.sharesCache = target != nullptr;
  timing.work_.pages = options.pages;
  if (auto collected = timing.collectTrees(entries, options); !collected)
    return collected.error();
  return timing;
}

Result<void> Timing::collectTrees(const std::vector<const config_cache::Entry *> &entries,
                                  const TimingOptions &options) {
  std::map<std::string, std::vector<tree::KvTree>> classes;
  for (const config_cache::Entry *entry : entries)
    classes[entry->treeClass.text()];
  const plan::Reach reach = this->reach();
  config_cache::TreeClassifier classifier(reach);
  for (const std::string &name : options.families) {
    auto samples = session::namedSamples(name, work_.variant, 0, options.recordsFolder);
    if (!samples)
      return samples.error();
    for (session::Sample &sample : *samples) {
      const config_cache::TreeFeatures features = classifier.measure(sample.tree);
      const auto found = classes.find(classOf(features).text());
      if (found == classes.end() || sample.isHeldOut)
        continue;
      if (auto &places = places_[found->first];
          std::find(places.begin(), places.end(), features.place()) == places.end())
        places.push_back(features.place());
      found->second.push_back(std::move(sample.tree));
    }
  }
  for (auto &[name, trees] : classes) {
    if (options.isHeldOut && !trees.empty())
      trees = othersLike(trees, name, reach, options.treesPerClass);
    else if (trees.size() > static_cast<std::size_t>(options.treesPerClass))
      trees.resize(static_cast<std::size_t>(options.treesPerClass));
    if (!trees.empty())
      work_.classes.push_back({name, std::move(trees)});
  }
  return {};
}

std::vector<const tree::KvTree *> Timing::treesOf(const config_cache::Entry &entry) const {
  std::vector<const tree::KvTree *> trees;
  for (const measure::ClassTrees &own : work_.classes)
    if (own.name == entry.treeClass.text())
      for (const tree::KvTree &tree : own.trees)
        trees.push_back(&tree);
  return trees;
}

std::vector<config_cache::Coordinates> Timing::placesOf(const config_cache::Entry &entry) const {
  const auto found = places_.find(entry.treeClass.text());
  return found == places_.end() ? std::vector<config_cache::Coordinates>{} : found->second;
}

/// All at once, before the device is opened here: a process with an open device must not be forked.
Result<void> Timing::compile(const std::vector<config::Config> &configs) {
  auto source = program_->source();
  if (!source)
    return source.error();
  source_ = std::move(*source);
  constexpr double kSeconds = 90;
  kernels_ = std::make_unique<session::CompilePool>(
      [&source = *source_, &target = *target_] { return measure::makeCompileService(source, target); },
      std::max(1, exec::usableProcessors() - 1), kSeconds);
  kernels_->ahead(configs);
  for (const config::Config &config : configs)
    if (const auto &made = kernels_->get(config); !made.error.empty())
      return Error{ErrorCode::Environment, made.error, ""};
  return {};
}

Result<void> Timing::open(const std::vector<config::Config> &configs) {
  session::SideBySide::Options how;
  Result<std::unique_ptr<measure::Machine>> machine(Error{});
  if (target_) {
    if (auto compiled = compile(configs); !compiled)
      return compiled;
    machine = measure::openCuda(program_->variant());
    how.kernels = [kernels = kernels_.get()](const config::Config &config) -> Result<package::KernelSet> {
      return measure::unpackKernels(kernels->get(config).kernels, config);
    };
  } else {
    auto kernel = program_->cpuKernel();
    if (!kernel)
      return kernel.error();
    how.estimator = session::Estimator::Fastest; // other programs on a host only add time
    machine = measure::openCpu(program_->variant(), std::move(*kernel), device_.units);
  }
  if (!machine)
    return machine.error();
  if ((*machine)->key() != device_)
    return Error{ErrorCode::Usage, "this machine is " + (*machine)->key().text() + ", not " + device_.text(),
                 "without a SPEC nothing is timed"};
  driver_ = (*machine)->driver();
  timed_.emplace(work_, std::move(*machine), std::move(how));
  return {};
}

} // namespace

Result<RegretReport> reportTimedRegret(const config_cache::ConfigCache &cache, RegretRequest request,
                                       const program::Program &program, const TimingOptions &options) {
  const auto signature = config_cache::VariantSignature::of(program.variant());
  std::vector<const config_cache::Entry *> entries;
  for (const config_cache::LoadedEntry &loaded : cache.entries())
    if (loaded.entry.signature == signature)
      entries.push_back(&loaded.entry);
  auto timing = Timing::make(program, cache.device(), request.target, entries, options);
  if (!timing)
    return timing.error();
  request.variant = &program.variant();
  request.reach = timing->reach();
  request.treesOf = [&](const config_cache::Entry &entry) { return timing->treesOf(entry); };
  request.tunedOn = [&](const config_cache::Entry &entry) { return timing->placesOf(entry); };
  request.isWanted = [&, isWanted = request.isWanted](const config_cache::Entry &entry) {
    return entry.signature == signature && !timing->treesOf(entry).empty() && (!isWanted || isWanted(entry));
  };
  // A first pass without times finds the configs to compile.
  std::vector<config::Config> needed;
  request.measure = [&](const config_cache::Entry &, int, const std::vector<config::Config> &configs) {
    needed.insert(needed.end(), configs.begin(), configs.end());
    return Result<std::vector<double>>(std::vector<double>(configs.size(), 1.0));
  };
  if (auto asked = reportRegret(cache, request); !asked)
    return asked;
  if (auto opened = timing->open(needed); !opened)
    return opened.error();
  request.measure = [&](const config_cache::Entry &entry, int tree,
                        const std::vector<config::Config> &configs) {
    return timing->measure(entry, tree, configs);
  };
  auto report = reportRegret(cache, request);
  if (report)
    report->driver = timing->driver();
  return report;
}

} // namespace deft::regret
