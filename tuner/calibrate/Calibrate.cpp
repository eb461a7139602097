#include "tuner/calibrate/Calibrate.h"

#include "compiler/kernels/Occupancy.h"
#include "runtime/config_cache/Entry.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/plan/AgainPrice.h"
#include "runtime/plan/Planner.h"
#include "tuner/calibrate/Probes.h"
#include "tuner/measure/CompileService.h"
#include "tuner/measure/Samples.h"
#include "tuner/session/ChildProcesses.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

namespace deft::calibrate {

using config::CostCoefficients;
using support::Error;
using support::ErrorCode;
using support::Result;
using Clock = std::chrono::steady_clock;

namespace {

/// On a GPU each value is a median already; on a host, other programs only add time.
constexpr int kGpuRounds = 3, kCpuRounds = 7, kGpuRuns = 21, kCpuRuns = 2;
constexpr int kFewestProbes = 12;

struct PlannedProbe {
  std::size_t config = 0, tree = 0;
  plan::Plan plan;
  int blocks = 0;
  double readAgain = 0; ///< plan::bytesReadAgain
  std::vector<double> times;

  double us(bool isGpu) const {
    return isGpu ? measure::median(times) : *std::min_element(times.begin(), times.end());
  }
};

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One calibration from start to end.
class Calibrator {
public:
  Calibrator(const CalibrateInput &input, const CalibrateOptions &options, const session::Listener &listener)
      : input_(input), options_(options), listener_(listener), start_(Clock::now()),
        isGpu_(input.backend.isGpu()) {}

  Result<Calibration> run() {
    const auto kind = isGpu_ ? config::DeviceKind::Gpu : config::DeviceKind::Cpu;
    auto trees = probeTrees(kind);
    if (!trees)
      return trees.error();
    trees_ = std::move(*trees);
    makeWork();
    session::ChildProcessOptions limits;
    limits.compilers = !isGpu_                  ? 0
                       : options_.compilers > 0 ? options_.compilers
                                                : std::max(1, options_.threads - 1);
    processes_ = std::make_unique<session::ChildProcesses>(
        [&] { return measure::makeMeasureService(work_, input_.backend.open); },
        [&] { return measure::makeCompileService(*input_.backend.source, *target_); }, limits);
    const auto device = processes_->device();
    if (!device)
      return device.error();
    result_.device = device->key;
    if (isGpu_)
      target_ = targetOf(device->key);
    listener_.say("device: " + device->key.text());

    const config_cache::FoundPrices found = config_cache::findPrices(options_.places, device->key);
    result_.from = found.of;
    result_.prices = found.prices;
    result_.notes = found.notes;
    auto untuned = input_.backend.untuned(device->key);
    if (!untuned)
      return untuned.error();
    for (config::Config &config : *untuned)
      config.cost = found.prices.plans;
    configs_ = probeConfigs(*untuned, kind);
    if (auto planned = makePlans(); !planned)
      return planned.error();
    if (auto timed = timeAll(); !timed)
      return timed.error();
    fit();
    return save();
  }

private:
  void makeWork() {
    work_.variant = input_.variant;
    work_.params = input_.params;
    work_.seed = options_.seed;
    work_.threads = options_.threads;
    work_.sharesCache = isGpu_;
    measure::ClassTrees &all = work_.classes.emplace_back();
    all.name = "probes";
    for (const ProbeTree &tree : trees_)
      all.trees.push_back(tree.tree);
  }

  static std::string idOf(std::size_t config) { return "probe" + std::to_string(config); }

  /// Makes plans as the process with the device does.
  Result<void> makePlans() {
    facts_ = measure::factsOf(work_, result_.device.kind);
    const auto shape = kernels::KernelShape::of(input_.variant);
    for (std::size_t c = 0; c < configs_.size(); ++c)
      for (std::size_t t = 0; t < trees_.size(); ++t) {
        if (!configs_[c].isChoice && !trees_[t].isCutOtherwise)
          continue;
        PlannedProbe probe{c, t, {}, 0, 0, {}};
        probe.blocks = kernels::estimateBlocks(shape, configs_[c].config, target_, result_.device.units);
        plan::Planner planner;
        if (auto made = planner.make(trees_[t].tree, facts_.withoutPages(), configs_[c].config, probe.blocks,
                                     probe.plan);
            !made)
          return made.error();
        probe.readAgain =
            plan::bytesReadAgain(planner.read(trees_[t].tree, facts_), facts_, configs_[c].config);
        probes_.push_back(std::move(probe));
      }
    return {};
  }

  void tell(const std::string &stage, int measured, int left) const {
    if (!listener_.progress)
      return;
    session::Status status;
    status.stage = stage;
    status.measured = measured;
    status.left = left;
    status.secondsLeft = std::max(0.0, options_.seconds - secondsSince(start_));
    listener_.progress(status);
  }

  /// Times all of them in each round, so that a temporary disturbance affects all equally.
  Result<void> timeAll() {
    std::vector<config::Config> all;
    for (const ProbeConfig &one : configs_)
      all.push_back(one.config);
    if (processes_->compilers().isNeeded())
      processes_->compilers().ahead(all);
    if (auto opened = processes_->openClass(0); !opened)
      return opened;
    std::map<std::size_t, bool> isUsable;
    const int rounds = isGpu_ ? kGpuRounds : kCpuRounds;
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < probes_.size(); ++i) {
        if (listener_.wantsToStop())
          return Error{ErrorCode::Environment, "the calibration was interrupted", "nothing was written"};
        if (secondsSince(start_) > options_.seconds)
          return enough();
        PlannedProbe &probe = probes_[i];
        tell("probe", static_cast<int>(round * probes_.size() + i),
             static_cast<int>(rounds * probes_.size() - round * probes_.size() - i));
        const auto [known, isNew] = isUsable.try_emplace(probe.config, true);
        // Tuning and `deftc run --check` check the kernels' results; here only their time matters.
        if (isNew)
          known->second = !isRefused(processes_->admit(idOf(probe.config), configs_[probe.config].config,
                                                       /*isChecked=*/true));
        std::vector<double> us;
        if (!known->second || isRefused(processes_->time(idOf(probe.config), static_cast<int>(probe.tree),
                                                         isGpu_ ? kGpuRuns : kCpuRuns, us)))
          continue;
        probe.times.insert(probe.times.end(), us.begin(), us.end());
      }
    return enough();
  }

  bool isRefused(const std::optional<session::ChildProcesses::Fault> &fault) {
    if (fault)
      result_.notes.push_back("a probe is left out: " + fault->stage + ": " + fault->reason);
    return fault.has_value();
  }

  Result<void> enough() {
    std::erase_if(probes_, [](const PlannedProbe &probe) { return probe.times.empty(); });
    if (std::ssize(probes_) >= kFewestProbes)
      return {};
    return Error{ErrorCode::Environment,
                 "only " + std::to_string(probes_.size()) + " probes could be timed in " +
                     std::to_string(std::lround(options_.seconds)) + " s, at least " +
                     std::to_string(kFewestProbes) + " are needed",
                 result_.notes.empty() ? "" : result_.notes.back()};
  }

  CostCoefficients ofVariant(const CostCoefficients &cost) const {
    return isGpu_ ? config_cache::ofColumns(cost, input_.variant.tensors) : cost;
  }

  /// The price for comparing kernels.
  double price(const PlannedProbe &probe, const CostCoefficients &cost) const {
    plan::CostModel model;
    model.set(facts_, configs_[probe.config].config, plan::ofBytes(ofVariant(cost), probe.readAgain),
              probe.blocks);
    return model.estimate(probe.plan).microseconds;
  }

  /// The time of a token of a full tile of the first config, of a machine that does nothing else: what
  /// chunk_token_us is a rough price of.
  double tokenUs(const CostCoefficients &cost) const {
    plan::CostModel model;
    model.set(facts_, configs_.front().config, ofVariant(cost), probes_.front().blocks);
    const int queries = model.queriesPerTile();
    return model.stepUs(queries) / model.tokenStep(queries) + model.readUs();
  }

  PriceQuality qualityBy(const CostCoefficients &cost) const {
    std::vector<PricedProbe> priced;
    for (const PlannedProbe &probe : probes_) {
      const double us = price(probe, cost);
      priced.push_back({probe.tree, configs_[probe.config].isChoice, probe.us(isGpu_), us,
                        config_cache::UntunedChooser::rankOf(us, configs_[probe.config].config, probe.plan)});
    }
    return qualityOf(priced);
  }

  void fit() {
    std::vector<Observation> observations;
    for (const PlannedProbe &probe : probes_)
      observations.push_back(
          {probe.us(isGpu_), [this, &probe](const CostCoefficients &cost) { return price(probe, cost); }});
    config::DevicePrices &prices = result_.prices;
    const CostCoefficients before = prices.kernels;
    result_.before = qualityBy(before);
    result_.fit = fitPrices(observations, before, config::priceNames());
    moveChunkPrices(result_.fit, tokenUs(result_.fit.after) / tokenUs(before));
    prices.kernels = result_.fit.after;
    prices.plans = movedAlike(prices.plans, result_.fit);
    result_.after = qualityBy(prices.kernels);
    for (const PlannedProbe &probe : probes_)
      result_.probes.push_back({trees_[probe.tree].name, configs_[probe.config].config,
                                configs_[probe.config].isChoice, probe.us(isGpu_), price(probe, before),
                                price(probe, prices.kernels)});
  }

  Result<Calibration> save() {
    result_.seconds = secondsSince(start_);
    result_.prices.device = config_cache::pricedDevice(result_.device);
    result_.prices.note = "deftc tune --calibrate, " + config_cache::timestamp();
    auto path = config_cache::savePrices(options_.places, result_.device, result_.prices, toJson(result_));
    if (!path)
      return path.error();
    result_.path = std::move(*path);
    return std::move(result_);
  }

  const CalibrateInput &input_;
  const CalibrateOptions &options_;
  const session::Listener &listener_;
  Clock::time_point start_;
  bool isGpu_;
  const target::Target *target_ = nullptr;
  measure::Work work_;
  std::unique_ptr<session::ChildProcesses> processes_;
  plan::VariantFacts facts_;
  std::vector<ProbeTree> trees_;
  std::vector<ProbeConfig> configs_;
  std::vector<PlannedProbe> probes_;
  Calibration result_;
};

} // namespace

Result<Calibration> calibrate(const CalibrateInput &input, const CalibrateOptions &options,
                              const session::Listener &listener) {
  return Calibrator(input, options, listener).run();
}

} // namespace deft::calibrate
