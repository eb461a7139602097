#include "runtime/api/Gpu.h"
#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaPlan.h"
#include "runtime/plan/Planner.h"
#include "tests/gpu/execution/Checks.h"
#include "tests/gpu/execution/FewShot.h"

#include <algorithm>

namespace deft::gpu_test {

using nlohmann::json;

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Two kernels that do nothing, one behind the other as a merge is behind what it merges: what a run costs
/// the driver at least.
class NoWork {
public:
  NoWork(std::shared_ptr<device::Device> device, Findings &findings)
      : kernel_(device::Kernel::load(std::move(device), kPtx, "nothing", 128, 0)) {
    findings.require(kernel_, "a kernel that does nothing");
  }
  bool launch(Findings &findings, const Stream &stream) const {
    return kernel_ && findings.require(kernel_->launch(1, nullptr, stream.get()), "a launch of nothing") &&
           findings.require(kernel_->launchDependent(1, nullptr, stream.get()), "a launch of nothing");
  }

private:
  static constexpr const char *kPtx =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
  support::Result<device::Kernel> kernel_;
};

} // namespace

json measureHost(const Subject &subject, Findings &findings) {
  constexpr int kRounds = 41, kLayers = 32;
  const NoWork noWork(subject.device, findings);
  json all = json::array();
  for (const int queries : {64, 1000}) {
    FewShot step(queries, 4000, 40);
    const Memory memory(subject, step.tokens, queries);
    if (!findings.require(memory.isReady, "memory for the times"))
      return all;
    const Stream stream(subject.device);
    std::vector<double> make, advance, upload, run, bare, replay;
    auto plan = GpuPlan::make(subject.attention, step.tree, {.runsAhead = kLayers});
    if (!findings.require(plan, "a plan for the times"))
      return all;
    // Half as much again, so that growth of the tree remakes the plan in the captured room.
    GpuRoom room = plan->room();
    room.items += room.items / 2;
    room.runs += room.runs / 2;
    room.partials += room.partials / 2;
    findings.require(plan->reserve(room), "reserve");
    findings.require(plan->upload(stream.get()), "upload");
    const auto layers = [&] {
      for (int layer = 0; layer < kLayers; ++layer)
        if (!findings.require(plan->run(subject.attention,
                                        {.q = memory.q.as<void>(),
                                         .k = memory.k.as<void>(),
                                         .v = memory.v.as<void>(),
                                         .pageTable = memory.table.as<int>()},
                                        {.out = memory.out.as<void>()}, stream.get()),
                              "a run"))
          return false;
      return true;
    };
    const Graph graph(subject.device, stream, layers);
    if (!findings.require(graph.isReady(), "a graph for the times"))
      return all;
    for (int round = 0; round < kRounds; ++round) {
      const bool isRemade = round % 4 == 3;
      if (isRemade) { // a query goes and comes back: the structure changes
        const Query last = step.tree.query(queries - 1);
        step.tree.removeQuery(queries - 1).value();
        step.tree.addQuery(last.node).value();
      } else {
        for (const int leaf : step.leaves)
          step.tree.append(leaf).value();
      }
      (isRemade ? make : advance).push_back(timeUs([&] {
        findings.require(plan->advance(step.tree), "advance");
      }));
      upload.push_back(timeUs([&] { findings.require(plan->upload(stream.get()), "upload"); }));
      run.push_back(timeUs([&] { layers(); }) / kLayers);
      findings.require(stream.wait(), "the runs");
      bare.push_back(timeUs([&] {
                       for (int layer = 0; layer < kLayers && noWork.launch(findings, stream); ++layer)
                         ;
                     }) /
                     kLayers);
      replay.push_back(timeUs([&] { findings.require(graph.launch(stream), "replay"); }));
      findings.require(stream.wait(), "the times");
    }
    all.push_back({{"queries", queries},
                   {"items", plan->summary().items},
                   {"plan_and_write_us", median(make)},
                   {"advance_and_write_us", median(advance)},
                   {"upload_us", median(upload)},
                   {"run_us", median(run)},
                   {"two_empty_launches_us", median(bare)},
                   {"graph_launch_us", median(replay)},
                   {"layers", kLayers}});
  }
  return all;
}

/// What noticing stale plans costs: one captured run with the watch and one without, on a small tree.
json measureWatch(const Subject &subject, Findings &findings) {
  json all = json::array();
  const auto &kernels = subject.attention.handle()->kernels;
  for (const auto &[prompt, branch] : {std::pair{64, 16}, {4000, 40}}) {
    tree::KvTree tree;
    const int root = tree.addNode(-1, prompt).value();
    for (int i = 0; i < 8; ++i)
      (void)tree.addQuery(tree.addNode(root, branch, prompt + i * branch).value()).value();
    const auto plan = plan::makePlan(tree, plan::VariantFacts::of(subject.variant()), kernels->config(),
                                     kernels->blocksAtOnce());
    const Memory memory(subject, prompt + 8 * branch, 8);
    if (!findings.require(plan, "a plan") || !findings.require(memory.isReady, "memory"))
      return all;
    json row{{"tokens", tree.tokens()}, {"partials", plan->partialSlots}};
    for (const bool isWatched : {false, true}) {
      auto onDevice = exec::CudaPlan::create(
          kernels, {.room = exec::PlanRoom::of(*plan), .isWatched = isWatched, .freeRuns = 0});
      if (!findings.require(onDevice, "a plan"))
        return all;
      if (isWatched)
        (*onDevice)->watch()->treeGeneration()->store(plan->generation);
      findings.require((*onDevice)->write(*plan), "write");
      findings.require((*onDevice)->upload(subject.device->stream()), "upload");
      exec::CudaPointers pointers;
      pointers.q = memory.q.as<void>();
      pointers.k = memory.k.as<void>();
      pointers.v = memory.v.as<void>();
      pointers.out = memory.out.as<void>();
      pointers.pageTable = memory.table.as<int>();
      pointers.cache = exec::cacheLayoutsOf(subject.variant());
      pointers.params = (*subject.attention.handle()->params).get();
      for (const bool coldL2 : {true, false}) {
        const auto timing = device::timeOnDevice(
            subject.device, [&] { return (*onDevice)->run(*kernels, pointers, subject.device->stream()); },
            {101, coldL2});
        if (!findings.require(timing, "timing"))
          return all;
        row[std::string(isWatched ? "watched" : "plain") + (coldL2 ? "_cold_us" : "_warm_us")] =
            timing->medianUs;
      }
    }
    all.push_back(row);
  }
  return all;
}

} // namespace deft::gpu_test
