#include "tools/deftc/bench/BenchMachine.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/device/Driver.h"
#include "runtime/exec/cpu/Processors.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tuner/workload/Workload.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <ostream>

namespace deft::cli {

using bench::KernelBenchResult;
using bench::KernelRow;
using support::Error;
using support::ErrorCode;
using support::Result;

std::string RowRun::wrong() const {
  for (const auto &[pages, result] :
       {std::pair{"contiguous", &contiguous}, std::pair{"scattered", scattered ? &*scattered : nullptr},
        std::pair{"pages of 16", pages16 ? &*pages16 : nullptr}})
    if (result && !result->check.passed())
      return std::string(pages) + ": " + reference::explainFailure(result->check);
  return {};
}

Result<std::unique_ptr<BenchMachine>> BenchMachine::open(Context &context, const KernelBenchFlags &flags) {
  std::unique_ptr<BenchMachine> machine(new BenchMachine(context, flags));
  auto device = device::Device::open();
  if (!device)
    return device.error();
  machine->device_ = *device;
  std::optional<bench::MeasuredCeilings> measured;
  if (auto probe = bench::CeilingProbe::open(*device)) {
    machine->probe_.emplace(std::move(*probe));
    auto ceilings = machine->probe_->measure(flags.repeats);
    if (!ceilings)
      return ceilings.error();
    measured = std::move(*ceilings);
  } else {
    context.err << "warning: the ceilings are not measured: " << probe.error().message << '\n';
  }
  machine->yardstick_.emplace(std::move(measured), bench::recordedCeilings((*device)->facts().name));
  return machine;
}

Result<const program::Program *> BenchMachine::programOf(const std::string &attention) {
  const auto known = programs_.find(attention);
  if (known != programs_.end())
    return known->second ? &*known->second : nullptr;
  for (const std::string &spec : flags_.specs) {
    auto program = openProgram(context_, spec, attention);
    if (!program && program.error().code == ErrorCode::Usage) // another spec may have it
      continue;
    if (!program)
      return program.error();
    return &*programs_.emplace(attention, std::move(*program)).first->second;
  }
  programs_.emplace(attention, std::nullopt);
  return nullptr;
}

Result<config_cache::Ruling> BenchMachine::choose(const program::Program &program, const tree::KvTree &tree) {
  const device::DeviceFacts &facts = device_->facts();
  auto untuned = program.untunedConfigs(facts.major, facts.minor);
  if (!untuned)
    return untuned.error();
  if (!configs_)
    configs_ = loadConfigs(context_, {flags_.config, flags_.untuned}, config_cache::DeviceKey::ofGpu(facts));
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  config_cache::ConfigChooser chooser(configs_, program.sharedVariant(), target, std::move(*untuned),
                                      facts.multiprocessors);
  const config_cache::Ruling &ruling = chooser.choose(tree);
  if (auto usable = checkGiven(ruling); !usable)
    return usable.error();
  return ruling;
}

Result<bench::KernelBench *> BenchMachine::benchOf(const std::string &attention,
                                                   const config::Config &config) {
  for (const OpenBench &open : benches_)
    if (open.attention == attention && config_cache::haveSameKernels(open.config, config))
      return open.bench.get();
  const auto program = programOf(attention);
  if (!program)
    return program.error();
  if (!*program)
    return Error{ErrorCode::Usage, "no spec has an attention `" + attention + "`", ""};
  std::string warning;
  const device::DeviceFacts &facts = device_->facts();
  auto kernels = (*program)->cudaKernels(facts.major, facts.minor, config, warning);
  if (!warning.empty())
    context_.err << "warning: " << warning << '\n';
  if (!kernels)
    return kernels.error();
  auto made = bench::KernelBench::open(device_, (*program)->variant(), *kernels);
  if (!made)
    return made.error();
  benches_.push_back({attention, config, std::make_unique<bench::KernelBench>(std::move(*made))});
  return benches_.back().bench.get();
}

/// By the config that the rules give the tree.
Result<TreeRun> BenchMachine::runOn(const std::string &attention, const tree::KvTree &tree,
                                    bench::KernelBenchOptions options) {
  const auto program = programOf(attention);
  if (!program)
    return program.error();
  if (!*program)
    return Error{ErrorCode::Usage, "no spec has an attention `" + attention + "`", ""};
  auto chosen = choose(**program, tree);
  if (!chosen)
    return chosen.error();
  const auto bench = benchOf(attention, chosen->config());
  if (!bench)
    return bench.error();
  options.config = chosen->config();
  auto result = (*bench)->run(tree, options);
  if (!result)
    return result.error();
  return TreeRun{std::move(*chosen), std::move(*result), *bench};
}

bool BenchMachine::has(std::string_view attention) {
  const auto program = programOf(std::string(attention));
  return !program || *program; // what fails for another reason is tried, and reported then
}

std::string BenchMachine::missing(const KernelRow &row) {
  const bool isRecorded = row.workload.starts_with("speculative") || row.workload.starts_with("reasoning_");
  if (isRecorded && flags_.workloads.empty())
    return "it needs --workloads DIR (tests/gpu/recorded_workloads.py of deftc's sources makes the folder)";
  return has(row.attention) ? "" : "no spec has an attention `" + std::string(row.attention) + "`";
}

bench::KernelBenchOptions BenchMachine::options() const {
  bench::KernelBenchOptions options;
  options.repeats = flags_.repeats;
  options.seed = flags_.seed;
  options.threads = exec::usableProcessors();
  if (flags_.chunk >= 0)
    options.chunkTokens = flags_.chunk;
  if (flags_.tileQ > 0)
    options.tileQ = flags_.tileQ;
  if (!flags_.partition.empty())
    options.partition = config::partitionFromName(flags_.partition);
  return options;
}

Result<tree::KvTree> BenchMachine::treeOf(const KernelRow &row) const {
  if (!row.treeFile.empty())
    return tree::readTreeFile(std::string(row.treeFile));
  const auto workload = workload::make(row.workload, flags_.seed, flags_.workloads);
  return workload ? Result<tree::KvTree>(workload->tree()) : workload.error();
}

Result<TreeRun> BenchMachine::measurePlain(const KernelRow &row, const std::string &attention) {
  const auto tree = treeOf(row);
  if (!tree)
    return tree.error();
  return runOn(attention, *tree, options());
}

Result<double> BenchMachine::floorUs(const spec::Variant &variant, const KernelBenchResult &result) {
  double measuredUs = 0;
  if (probe_) {
    const auto read = probe_->read(static_cast<std::size_t>(result.cacheBytes), flags_.repeats);
    if (!read)
      return read.error();
    measuredUs = read->bestUs();
  }
  return std::max(yardstick_->readUs(result.cacheBytes, measuredUs),
                  yardstick_->productUs(result.flops, variant.tensors.k.dtype));
}

Result<RowRun> BenchMachine::measure(const KernelRow &row) {
  const auto start = std::chrono::steady_clock::now();
  const auto tree = treeOf(row);
  if (!tree)
    return tree.error();
  const std::string attention(row.attention), pages16 = bench::withPagesOf16(attention);
  const auto program = programOf(attention);
  if (!program)
    return program.error();
  if (!*program)
    return Error{ErrorCode::Usage, "no spec has an attention `" + attention + "`", ""};
  RowRun run;
  run.row = row;
  run.variant = (*program)->variant();
  bench::KernelBenchOptions options = this->options();
  options.warmToo = !flags_.quick;
  options.explore = flags_.explore;
  auto contiguous = runOn(attention, *tree, options);
  if (!contiguous)
    return contiguous.error();
  run.ruling = std::move(contiguous->ruling);
  run.contiguous = std::move(contiguous->result);
  options.warmToo = options.explore = false;
  options.pages = tree::PlacementOrder::Scattered;
  if (!flags_.quick && run.variant.cache.isPaged()) {
    auto scattered = runOn(attention, *tree, options);
    if (!scattered)
      return scattered.error();
    run.scattered = std::move(scattered->result);
  }
  if (!flags_.quick && has(pages16)) {
    auto scattered = runOn(pages16, *tree, options);
    if (!scattered)
      return scattered.error();
    run.pages16 = std::move(scattered->result);
  }

  const bench::Measured &chosen = run.contiguous.chosen;
  const auto floor = floorUs(run.variant, run.contiguous);
  if (!floor)
    return floor.error();
  const double readUs = yardstick_->readUs(run.contiguous.cacheBytes, 0);
  const double productUs = yardstick_->productUs(run.contiguous.flops, run.variant.tensors.k.dtype);
  const double scale =
      readUs >= productUs ? yardstick_->readScale() : yardstick_->productScale(run.variant.tensors.k.dtype);
  const double extraBytes = static_cast<double>(chosen.io.queries + chosen.io.outputs + chosen.io.partials);
  run.rooflineUs = std::max(*floor, yardstick_->readUs(run.contiguous.cacheBytes + extraBytes, 0));
  run.score.name = row.name;
  run.score.coldUs = chosen.medianUs;
  run.score.warmUs = chosen.warmUs;
  run.score.floorUs = *floor;
  if (yardstick_->recorded()) { // times of another card say nothing of this one
    run.score.recordedFloorUs = row.floorUs * scale;
    run.score.peerUs = row.peerUs * scale;
    run.score.rawPeerUs = row.peerUs;
  }
  run.score.scatteredUs = run.scattered ? run.scattered->chosen.medianUs : 0;
  run.score.scatteredLimit =
      run.variant.cache.pageSize >= 16 ? bench::kScatteredPagesLimit : bench::kScatteredTokensLimit;
  run.score.pages16Us = run.pages16 ? run.pages16->chosen.medianUs : 0;
  run.score.bestUs = run.contiguous.best ? run.contiguous.best->medianUs : 0;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return run;
}

} // namespace deft::cli
