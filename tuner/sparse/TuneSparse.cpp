#include "tuner/sparse/TuneSparse.h"

#include "compiler/kernels/SparsePhase.h"
#include "runtime/config_cache/SparseFiles.h"
#include "runtime/module_cache/CompileKernels.h"
#include "tuner/sparse/CudaSparseMachine.h"
#include "tuner/sparse/SparseLists.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>

namespace deft::sparse {

using config::PhaseConfig;
using config_cache::SparseEntry;
using support::Error;
using support::ErrorCode;
using support::Result;
using Clock = std::chrono::steady_clock;

namespace {

/// Whether --axis allows the tile.
bool isAdmitted(const PhaseConfig &tile, const std::vector<space::AxisOverride> &axes) {
  const auto holds = [&](const space::AxisOverride &axis) {
    const int value = axis.name == "tile_kv" ? tile.tileKv : axis.name == "stages" ? tile.stages : tile.warps;
    return std::find(axis.values.begin(), axis.values.end(), std::to_string(value)) != axis.values.end();
  };
  return std::all_of(axes.begin(), axes.end(), holds);
}

Result<void> checkAxes(const std::vector<space::AxisOverride> &axes) {
  for (const space::AxisOverride &axis : axes)
    if (axis.name != "tile_kv" && axis.name != "stages" && axis.name != "warps")
      return Error{ErrorCode::Usage, "sparse layers have no axis `" + axis.name + "`",
                   "they have tile_kv, stages and warps"};
  return {};
}

/// One tuning from start to end.
class Tuning {
public:
  Tuning(const program::Program &program, const std::vector<exec::ParamValue> &params,
         const TuneOptions &options, const Listener &listener)
      : program_(program), variant_(program.variant()), params_(params), options_(options),
        listener_(listener) {}

  Result<TuneReport> run() {
    if (auto checked = checkAxes(options_.axes); !checked)
      return checked.error();
    search_.lists = options_.lists.empty() ? listsOf(variant_) : options_.lists;
    auto device = device::Device::open();
    if (!device)
      return device.error();
    device_ = std::move(*device);
    const device::DeviceFacts &facts = device_->facts();
    target_ = target::targetForDevice(facts.major, facts.minor);
    report_.device = config_cache::DeviceKey::ofGpu(facts);
    report_.signature = config_cache::VariantSignature::of(variant_);
    report_.isPackaged = program_.isPackaged();
    if (auto made = makeBase(); !made)
      return made.error();
    findKnown();
    if (!search_.lists.empty())
      if (auto searched = searchAll(); !searched)
        return searched.error();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return std::move(report_);
  }

private:
  void tell(const std::string &text) const {
    if (listener_.progress)
      listener_.progress({text, 0, static_cast<int>(search_.lists.size())});
  }

  bool isCancelled() const { return listener_.isCancelled && listener_.isCancelled(); }
  bool isLate() const {
    return options_.seconds > 0 &&
           std::chrono::duration<double>(Clock::now() - start_).count() > options_.seconds;
  }

  /// Makes the untuned kernels.
  Result<void> makeBase() {
    tell("compiling");
    const device::DeviceFacts &facts = device_->facts();
    const auto config = program_.untunedConfig(facts.major, facts.minor);
    if (!config)
      return config.error();
    std::string warning;
    auto base = program_.cudaKernels(facts.major, facts.minor, *config, warning);
    if (!base)
      return base.error();
    if (!warning.empty())
      report_.notes.push_back(std::move(warning));
    if (!base->selecting)
      return Error{ErrorCode::Usage, "the kernels of " + variant_.called() + " do not select",
                   "the package is from before GPUs selected: build it again"};
    base_ = std::move(*base);
    report_.untunedTile = report_.tile = base_.selecting->sparsePhase;
    return {};
  }

  /// Reads the results in this device's entries: for the tile that was chosen, or the package's.
  void findKnown() {
    if (options_.isFresh || !options_.path.empty() || !options_.axes.empty())
      return;
    const auto tuning = config_cache::findSparse(options_.places, report_.device).tuning;
    if (!report_.isPackaged) {
      const auto chosen = tuning.phaseFor(variant_, *target_);
      if (!chosen)
        return;
      knownTile_ = report_.tile = *chosen;
    }
    std::erase_if(search_.lists, [&](const Lists &lists) {
      const auto *found = tuning.findFor(variant_, lists.budget, report_.tile);
      if (!found)
        return false;
      const auto &cuts = found->entry.cuts;
      const auto cut = std::find_if(cuts.begin(), cuts.end(),
                                    [&](const auto &one) { return one.queries == lists.queries; });
      if (cut != cuts.end())
        report_.known.push_back({lists, cut->itemTokens, 0, cut->tunedUs, cut->untunedUs, cut->spread});
      return cut != cuts.end();
    });
  }

  /// The tiles to compare with the untuned one.
  std::vector<PhaseConfig> otherTiles() const {
    if (report_.isPackaged)
      return {};
    if (knownTile_)
      return kernels::haveSameSparseTile(*knownTile_, report_.untunedTile) ? std::vector<PhaseConfig>()
                                                                           : std::vector{*knownTile_};
    std::vector<PhaseConfig> others = kernels::sparsePhases(kernels::KernelShape::of(variant_), *target_);
    std::erase_if(others, [&](const PhaseConfig &tile) {
      return kernels::haveSameSparseTile(tile, report_.untunedTile) || !isAdmitted(tile, options_.axes);
    });
    return others;
  }

  /// With all threads.
  Result<std::vector<SparseKernel>> compile(const std::vector<PhaseConfig> &tiles) {
    std::vector<SparseKernel> compiled;
    if (tiles.empty())
      return compiled;
    const auto nvrtc = nvrtc::Nvrtc::load();
    if (!nvrtc)
      return nvrtc.error();
    const auto source = program_.source();
    if (!source)
      return source.error();
    const auto cache = module_cache::CubinCache::openDefault();
    std::vector<Result<package::Kernel>> results(tiles.size(), Result<package::Kernel>(Error{}));
    std::atomic<std::size_t> next = 0, done = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < tiles.size() && !isCancelled() && !isLate(); i = next++) {
        results[i] = module_cache::compileSparse(cache.get(), **nvrtc, *source, tiles[i], *target_);
        tell("compiling, " + std::to_string(tiles.size() - ++done) + " kernels left");
      }
    };
    std::vector<std::future<void>> others;
    for (int i = 1; i < std::min(options_.threads, static_cast<int>(tiles.size())); ++i)
      others.push_back(std::async(std::launch::async, work));
    work();
    for (std::future<void> &other : others)
      other.get();
    for (std::size_t i = 0; i < tiles.size(); ++i)
      if (results[i] && !results[i]->resources.spills())
        compiled.push_back({tiles[i], std::move(*results[i])});
    return compiled;
  }

  Result<void> searchAll() {
    auto kernels = compile(otherTiles());
    if (!kernels)
      return kernels.error();
    tell("making inputs");
    auto machine = CudaSparseMachine::open(device_, variant_, params_, base_, *kernels, search_.lists,
                                           {options_.threads, options_.seed}, report_.notes);
    if (!machine)
      return machine.error();
    const std::vector<PhaseConfig> &tiles = (*machine)->tiles();
    report_.tiles = static_cast<int>(tiles.size());
    if (knownTile_) {
      const auto known = std::find_if(tiles.begin(), tiles.end(), [&](const PhaseConfig &tile) {
        return kernels::haveSameSparseTile(tile, *knownTile_);
      });
      if (known == tiles.end() && isLate()) { // not compiled, since time is over
        report_.ended = Ended::Budget;
        return {};
      }
      if (known == tiles.end())
        return Error{ErrorCode::Environment, "the tile that was chosen before cannot be timed",
                     "--fresh begins anew"};
      search_.tile = static_cast<std::size_t>(known - tiles.begin());
    }
    search_.isOver = [&] { return isCancelled() || isLate(); };
    search_.progress = listener_.progress;
    const auto found = search(**machine, search_);
    if (!found)
      return found.error();
    report_.ended = found->isComplete ? Ended::Complete : isCancelled() ? Ended::Interrupted : Ended::Budget;
    report_.tile = tiles[found->tile];
    report_.tileGain = found->tileGain;
    report_.lists = found->lists;
    return save();
  }

  Result<void> save() {
    std::vector<SparseEntry> entries;
    for (const TunedLists &lists : report_.lists) {
      auto own = std::find_if(entries.begin(), entries.end(),
                              [&](const SparseEntry &entry) { return entry.budget == lists.lists.budget; });
      if (own == entries.end())
        own = entries.insert(entries.end(), entryFor(lists.lists.budget));
      own->cuts.push_back(
          {lists.lists.queries, lists.itemTokens, lists.tunedUs, lists.untunedUs, lists.spread});
    }
    if (entries.empty())
      return {};
    for (SparseEntry &entry : entries)
      std::sort(entry.cuts.begin(), entry.cuts.end(),
                [](const auto &a, const auto &b) { return a.queries < b.queries; });
    auto path = config_cache::saveSparse(options_.places, report_.device, entries, options_.path);
    if (!path)
      return path.error();
    report_.path = std::move(*path);
    return {};
  }

  SparseEntry entryFor(int budget) const {
    SparseEntry entry;
    entry.signature = report_.signature;
    entry.by = variant_.select->by;
    entry.budget = budget;
    entry.tileKv = report_.tile.tileKv;
    entry.stages = report_.tile.stages;
    entry.warps = report_.tile.warps;
    entry.isChosen = !report_.isPackaged;
    const int version = device_->driver().version();
    entry.provenance = {DEFT_VERSION, config_cache::sparseKernelHash(), config_cache::timestamp(),
                        "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10),
                        options_.note};
    return entry;
  }

  const program::Program &program_;
  const spec::Variant &variant_;
  const std::vector<exec::ParamValue> &params_;
  const TuneOptions &options_;
  const Listener &listener_;
  Clock::time_point start_ = Clock::now();
  std::shared_ptr<device::Device> device_;
  const target::Target *target_ = nullptr;
  package::KernelSet base_;
  std::optional<PhaseConfig> knownTile_; ///< chosen earlier
  SearchOptions search_;
  TuneReport report_;
};

} // namespace

double shareOfBudget(double seconds) {
  constexpr double kShare = 0.25, kMost = 60;
  return std::min(kMost, kShare * seconds);
}

Result<void> checkSelects(const spec::Variant &variant) {
  if (variant.readsGivenLists())
    return Error{ErrorCode::Usage,
                 "sparse layers of " + variant.called() + " are not tuned: its lists are by `caller`",
                 "their tile and cuts are the rule's"};
  if (variant.select)
    return {};
  return Error{ErrorCode::Usage, variant.called() + " has no sparse layers: it selects nothing",
               "write `select { budget = 4096; }` in the spec"};
}

Result<TuneReport> tune(const program::Program &program, const std::vector<exec::ParamValue> &params,
                        const TuneOptions &options, const Listener &listener) {
  if (auto checked = checkSelects(program.variant()); !checked)
    return checked.error();
  return Tuning(program, params, options, listener).run();
}

} // namespace deft::sparse
