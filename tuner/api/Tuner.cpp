#include "compiler/config/ConfigJson.h"
#include "compiler/support/Utf8.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/ParamsImpl.h"
#include "runtime/api/TreeImpl.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/cpu/Processors.h"
#include "runtime/tree/CachePlacement.h"
#include "tuner/api/TuneEnd.h"
#include "tuner/api/TuneSparse.h"
#include "tuner/session/NamedSamples.h"
#include "tuner/session/Tune.h"
#include "tuner/workload/Families.h"

#include <deft/tune.hpp>

#include <limits>

namespace deft {

using api::usage;

struct Tuner::Impl {
  Attention attention; ///< its program is read by the session
  TuneOptions options;
  int threads = 1;
  session::TuneInput input; ///< but the backend
  int trees = 0;            ///< that were given without a name
};

namespace {

Result<void> checkOptions(const TuneOptions &options) {
  constexpr double kMostSeconds = 1e9; // thirty years
  if (!(options.budgetSeconds >= 0 && options.budgetSeconds <= kMostSeconds))
    return usage("TuneOptions::budgetSeconds is " + std::to_string(options.budgetSeconds) +
                     ", not between 0 and 1e9",
                 "0 sets no end");
  if (auto checked =
          api::checkRange("TuneOptions::device", static_cast<long long>(options.device),
                          static_cast<long long>(TuneDevice::Any), static_cast<long long>(TuneDevice::Gpu),
                          "cast no other to a TuneDevice");
      !checked)
    return checked;
  if (auto checked = api::checkRange("TuneOptions::candidates", options.candidates, 0,
                                     std::numeric_limits<int>::max(), "0 takes 64");
      !checked)
    return checked;
  if (!support::isUtf8(options.note))
    return usage("TuneOptions::note is not UTF-8");
  return api::checkThreads("TuneOptions::threads", options.threads);
}

session::TuneOptions toInternal(const TuneOptions &options, int threads) {
  session::TuneOptions own;
  own.budgetSeconds = options.budgetSeconds;
  own.mostCandidates = options.candidates;
  own.threads = threads;
  own.seed = options.seed;
  own.journal = options.journal;
  own.isFresh = options.isFresh;
  own.fromRelated = options.fromRelated;
  own.places = config_cache::defaultPlaces();
  own.configPath = options.configFile;
  own.note = options.note;
  return own;
}

support::Result<session::Backend> backendOf(const program::Program &program, TuneDevice device, int threads) {
  if (device == TuneDevice::Gpu || (device == TuneDevice::Any && measure::hasCuda()))
    return session::cudaBackend(program);
  return session::cpuBackend(program, threads);
}

session::Listener toInternal(const TuneListener &listener) {
  session::Listener own;
  own.note = listener.note;
  own.isCancelled = listener.isCancelled;
  if (listener.progress)
    own.progress = [&listener](const session::Status &status) {
      listener.progress({status.classIndex, status.classes, status.treeClass, status.stage, status.measured,
                         status.left, status.bestUs, status.untunedUs, status.secondsLeft});
    };
  return own;
}

TunedClass toPublic(const session::ClassReport &report) {
  TunedClass own;
  own.treeClass = report.treeClass.text();
  own.trees = report.trees;
  own.isDone = report.isDone;
  own.candidates = report.candidates;
  own.rejected = report.rejected;
  own.note = report.note;
  if (!report.isDone)
    return own;
  own.keepsUntuned = report.entry.keepsDefault;
  own.isComplete = report.entry.isComplete;
  own.untunedUs = report.entry.measurement.untunedUs;
  own.tunedUs = report.entry.measurement.tunedUs;
  own.gain = report.gain;
  own.heldOutGain = report.heldOutGain;
  own.config = config::toJson(report.entry.config).dump();
  return own;
}

TuneSummary toPublic(const session::TuneReport &report) {
  TuneSummary summary;
  summary.device = report.device.text();
  for (const session::ClassReport &one : report.classes)
    summary.classes.push_back(toPublic(one));
  summary.end = api::toTuneEnd(report.ended);
  summary.measured = report.made;
  summary.reused = report.reused;
  summary.seconds = report.seconds;
  summary.configFile = report.configPath;
  summary.journal = report.journal;
  summary.warnings = report.warnings;
  if (!report.written.setAside.empty())
    summary.warnings.push_back("the broken file that was there is kept in " + report.written.setAside);
  return summary;
}

} // namespace

Tuner::Tuner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tuner::Tuner(Tuner &&) noexcept = default;
Tuner &Tuner::operator=(Tuner &&) noexcept = default;
Tuner::~Tuner() = default;

Result<Tuner> Tuner::make(const Attention &attention, const TuneOptions &options) {
  return api::guarded([&]() -> Result<Tuner> {
    if (auto checked = checkOptions(options); !checked)
      return checked.error();
    auto impl = std::make_unique<Impl>(Impl{attention, options, options.threads, {}});
    if (options.threads == 0)
      impl->threads = exec::usableProcessors();
    impl->input.variant = attention.impl().variant();
    return Tuner(std::move(impl));
  });
}

Result<void> Tuner::addTree(const Tree &tree, const std::string &name, bool isHeldOut) {
  return api::guarded([&]() -> Result<void> {
    if (!support::isUtf8(name))
      return usage("the name of a tree is not UTF-8");
    if (tree.impl().tree().queries().empty())
      return usage("a tree without queries has nothing to tune");
    const std::string called = name.empty() ? "tree " + std::to_string(++impl_->trees) : name;
    auto placed = tree::placedTree(tree.impl().tree(), impl_->attention.pageSize());
    if (!placed)
      return api::toPublic(placed.error());
    impl_->input.samples.push_back({called, 0, std::move(*placed), isHeldOut});
    return {};
  });
}

Result<void> Tuner::addWorkload(std::string_view name) {
  return api::guarded([&]() -> Result<void> {
    auto samples =
        session::namedSamples(name, impl_->input.variant, impl_->options.seed, impl_->options.recordsFolder);
    if (!samples)
      return api::toPublic(samples.error());
    std::move(samples->begin(), samples->end(), std::back_inserter(impl_->input.samples));
    return {};
  });
}

Result<void> Tuner::setParams(const Params &params) {
  return api::guarded([&]() -> Result<void> {
    const Params::Impl &given = params.impl();
    if (&given.attention.impl() != &impl_->attention.impl())
      return usage("the parameters are those of `" + given.attention.name() + "`",
                   "make them of this very attention");
    const auto values = given.allOnHost();
    if (!values)
      return values.error();
    impl_->input.params.clear();
    for (const exec::ParamValue *value : *values)
      impl_->input.params.push_back(*value);
    return {};
  });
}

std::vector<std::string> Tuner::families() {
  std::vector<std::string> names;
  for (const workload::WorkloadFamily &family : workload::families())
    names.push_back(family.name);
  return names;
}

Result<TuneSummary> Tuner::run(const TuneListener &listener) {
  return api::guarded([&]() -> Result<TuneSummary> {
    session::TuneInput input = impl_->input;
    if (input.params.empty()) {
      auto defaults = exec::bindParams(input.variant, {});
      if (!defaults)
        return api::toPublic(defaults.error());
      input.params = std::move(*defaults);
    }
    auto backend = backendOf(impl_->attention.impl().program, impl_->options.device, impl_->threads);
    if (!backend)
      return api::toPublic(backend.error());
    input.backend = std::move(*backend);
    const program::Program &program = impl_->attention.impl().program;
    const bool selects = input.variant.select && input.backend.isGpu();
    if (selects && input.samples.empty())
      return api::tuneSparseAlone(program, input.params, api::sparseOptions(impl_->options, impl_->threads),
                                  listener);
    session::TuneOptions options = toInternal(impl_->options, impl_->threads);
    const bool hasSparse = selects && options.configPath.empty();
    sparse::TuneOptions ofSparse = api::sparseOptions(impl_->options, impl_->threads);
    ofSparse.seconds = sparse::shareOfBudget(options.budgetSeconds);
    if (hasSparse)
      options.budgetSeconds -= ofSparse.seconds;
    const auto report = session::tune(input, options, toInternal(listener));
    if (!report)
      return api::toPublic(report.error());
    if (report->notSaved)
      return api::toPublic(*report->notSaved);
    TuneSummary summary = toPublic(*report);
    if (hasSparse && report->ended != measure::Ended::Interrupted)
      api::tuneSparseBehind(summary, program, input.params, ofSparse, listener);
    return summary;
  });
}

} // namespace deft
