#include "tools/deftc/RegretTiming.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/cpu/Processors.h"
#include "tuner/measure/CompileService.h"
#include "tuner/measure/MeasureService.h"
#include "tuner/session/NamedSamples.h"
#include "tuner/workload/Similar.h"

#include <algorithm>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// At most so many that are like the others, near ones and far ones in turn, and of their class; some are of
/// another.
std::vector<tree::KvTree> othersLike(const std::vector<tree::KvTree> &trees, const std::string &treeClass,
                                     const plan::Reach &reach, int most) {
  constexpr std::uint64_t kMostTries = 60, kFirst = 2000; // others than those that sessions hold out
  config_cache::TreeClassifier classifier(reach);
  std::vector<tree::KvTree> others;
  for (std::uint64_t i = 0; i < kMostTries && static_cast<int>(others.size()) < most; ++i)
    if (tree::KvTree other =
            workload::similarTree(trees[i / 2 % trees.size()], workload::mixedSeed(kFirst + i));
        classifier.classify(other).text() == treeClass)
      others.push_back(std::move(other));
  return others;
}

} // namespace

Result<RegretTiming> RegretTiming::make(const program::Program &program, const ChosenDevice &device,
                                        const std::vector<const config_cache::Entry *> &entries,
                                        const Options &options) {
  RegretTiming timing(program, device);
  auto params = exec::bindParams(program.variant(), options.params);
  if (!params)
    return params.error();
  timing.work_.variant = program.variant();
  timing.work_.params = std::move(*params);
  timing.work_.threads = exec::usableProcessors();
  timing.work_.sharesCache = device.target != nullptr;
  timing.work_.pages = options.pages;
  if (auto collected = timing.collectTrees(entries, options); !collected)
    return collected.error();
  return timing;
}

Result<void> RegretTiming::collectTrees(const std::vector<const config_cache::Entry *> &entries,
                                        const Options &options) {
  std::map<std::string, std::vector<tree::KvTree>> classes;
  for (const config_cache::Entry *entry : entries)
    classes[entry->treeClass.text()];
  const plan::Reach reach = exec::reachOf(work_.variant, work_.params);
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

std::vector<const tree::KvTree *> RegretTiming::treesOf(const config_cache::Entry &entry) const {
  std::vector<const tree::KvTree *> trees;
  for (const measure::ClassTrees &own : work_.classes)
    if (own.name == entry.treeClass.text())
      for (const tree::KvTree &tree : own.trees)
        trees.push_back(&tree);
  return trees;
}

std::vector<config_cache::Coordinates> RegretTiming::placesOf(const config_cache::Entry &entry) const {
  const auto found = places_.find(entry.treeClass.text());
  return found == places_.end() ? std::vector<config_cache::Coordinates>{} : found->second;
}

/// All at a time, and before the device is opened here: processes that have it open should not be copied.
Result<void> RegretTiming::compile(const std::vector<config::Config> &configs) {
  auto source = program_->source();
  if (!source)
    return source.error();
  source_ = std::move(*source);
  constexpr double kSeconds = 90;
  kernels_ = std::make_unique<session::CompilePool>(
      [&source = *source_, &target = *device_.target] { return measure::makeCompileService(source, target); },
      std::max(1, exec::usableProcessors() - 1), kSeconds);
  kernels_->ahead(configs);
  for (const config::Config &config : configs)
    if (const auto &made = kernels_->get(config); !made.error.empty())
      return Error{ErrorCode::Environment, made.error, ""};
  return {};
}

Result<void> RegretTiming::open(const std::vector<config::Config> &configs) {
  session::SideBySide::Options how;
  Result<std::unique_ptr<measure::Machine>> machine(Error{});
  if (device_.target) {
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
    how.estimator = session::Estimator::Fastest; // others run on a host, and only add
    machine = measure::openCpu(program_->variant(), std::move(*kernel), device_.key.units);
  }
  if (!machine)
    return machine.error();
  if ((*machine)->key() != device_.key)
    return Error{ErrorCode::Usage,
                 "this machine is " + (*machine)->key().text() + ", not " + device_.key.text(),
                 "without a SPEC nothing is timed"};
  timed_.emplace(work_, std::move(*machine), std::move(how));
  return {};
}

} // namespace deft::cli
