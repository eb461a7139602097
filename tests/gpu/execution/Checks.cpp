#include "tests/gpu/execution/Checks.h"

#include "tests/gpu/execution/Decoding.h"

#include <algorithm>
#include <optional>
#include <thread>

namespace deft::gpu_test {

using nlohmann::json;

namespace {

/// A decode loop with its plan and page table on one stream.
struct Server {
  Server(const Subject &subject, Findings &found, const Decoding::Options &options, int runsAhead = 0)
      : findings(found), stream(subject.device), decoding(subject, found, stream, options),
        table(GpuPageTable::make(subject.gpu, Decoding::kTablePages).value()),
        plan(GpuPlan::make(subject.attention, decoding.tree(), {.runsAhead = runsAhead}).value()) {}

  /// Plan and page table on the way to the device.
  bool upload() {
    return findings.require(table.upload(decoding.sequences(), stream.get()), "the page table") &&
           findings.require(plan.upload(stream.get()), "the plan");
  }

  bool advance(const std::string &what) {
    const auto advanced = plan.advance(decoding.tree());
    if (advanced)
      ++counts[static_cast<int>(*advanced)];
    return findings.require(advanced, what);
  }

  /// All layers of one step, captured.
  std::unique_ptr<Graph> capture(const Subject &subject) {
    auto graph =
        std::make_unique<Graph>(subject.device, stream, [&] { return decoding.enqueueRuns(plan, table); });
    findings.require(graph->isReady(), "the capture of a graph");
    return graph;
  }

  void runStep(const Graph *graph) {
    decoding.beginStep();
    if (graph)
      findings.require(graph->launch(stream), "the launch of a graph");
    else
      decoding.enqueueRuns(plan, table);
    decoding.endStep();
  }

  Findings &findings;
  Stream stream;
  Decoding decoding;
  GpuPageTable table;
  GpuPlan plan;
  int counts[3] = {}; ///< of what advance() had to do
};

void change(Decoding &decoding, int step) {
  if (step % 5 == 4)
    decoding.restructure();
  else
    decoding.grow();
}

struct Decoder {
  const Subject *subject;
  bool replays; ///< a graph; else it enqueues
  int branches;
  unsigned seed;
};

/// Each in a thread of its own; returns how many steps of each were judged.
std::vector<int> decodeInThreads(const std::vector<Decoder> &decoders, Findings &findings) {
  constexpr int kSteps = 25;
  std::vector<int> steps(decoders.size());
  const auto decode = [&](std::size_t i) {
    const Decoder &own = decoders[i];
    Server server(*own.subject, findings, {.branches = own.branches, .seed = own.seed});
    findings.require(server.plan.reserve(Decoding::largeRoom()), "reserve");
    server.upload();
    const auto graph = own.replays ? server.capture(*own.subject) : nullptr;
    for (int step = 0; step < kSteps; ++step) {
      change(server.decoding, step);
      if (!server.advance("threads") || !server.upload())
        break;
      server.runStep(graph.get());
      if (step % 5 == 4 && !server.decoding.judge("threads"))
        break;
    }
    server.decoding.judge("threads");
    steps[i] = server.decoding.judgedSteps();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < decoders.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        decode(i);
      } catch (const BadResult &bad) {
        findings.require(false, std::string("threads: ") + bad.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return steps;
}

} // namespace

/// One graph, replayed while the tree grows and changes; each step right, and none captured anew.
json checkGrowingTree(const Subject &subject, Findings &findings) {
  constexpr int kSteps = 40;
  constexpr int kDealtRows = 60; ///< of an item whose tokens may be dealt: 49 to 64
  const int branches = std::clamp(kDealtRows / subject.variant().ratio(), 6, 40);
  Server server(subject, findings, {.layers = 3, .branches = branches, .seed = 11});
  if (!findings.require(server.plan.reserve(Decoding::largeRoom()), "reserve") || !server.upload())
    return {};
  const auto graph = server.capture(subject);
  if (!graph->isReady())
    return {};
  int dealing = 0;
  for (int step = 0; step < kSteps; ++step) {
    if (step > 0)
      change(server.decoding, step);
    if (!server.advance("a growing tree, step " + std::to_string(step)) || !server.upload())
      break;
    dealing += server.plan.summary().dealtItems > 0;
    server.runStep(graph.get());
    if (!server.decoding.judge("a growing tree"))
      break;
    if (!findings.require(server.plan.checkReplays(), "a growing tree"))
      break;
  }
  // The same plan without a graph, where launches fit it.
  server.runStep(nullptr);
  server.decoding.judge("without a graph");
  findings.require(dealing > 0 || !subject.mustDeal, "no plan of a growing tree deals tokens to warps");
  return {{"steps", server.decoding.judgedSteps()},
          {"config", server.plan.choice().why},
          {"dealing", dealing},
          {"in_place", server.counts[static_cast<int>(Advanced::InPlace)]},
          {"remade", server.counts[static_cast<int>(Advanced::Remade)]}};
}

/// A run with a stale plan is refused; a replay with one is noticed, and the next right one is not.
json checkStalePlans(const Subject &subject, Findings &findings) {
  Server server(subject, findings, {.seed = 12});
  findings.require(server.plan.reserve(Decoding::largeRoom()), "reserve");
  const auto early = server.plan.run(subject.attention, {}, {}, server.stream.get());
  findings.require(!early, "a run before the upload was not refused");
  server.upload();
  const auto graph = server.capture(subject);
  if (!graph->isReady())
    return {};
  int noticed = 0;
  for (int round = 0; round < 5; ++round) {
    server.runStep(graph.get());
    server.decoding.judge("before the tree changed");
    findings.require(server.plan.checkReplays(), "a replay of a right plan");

    server.decoding.grow();
    int dummy = 0;
    const auto refused =
        server.plan.run(subject.attention, {.q = &dummy, .k = &dummy, .v = &dummy, .pageTable = &dummy},
                        {.out = &dummy}, server.stream.get());
    findings.require(!refused && refused.error().message.find("stale") != std::string::npos,
                     "a run with a stale plan was not refused");
    findings.require(graph->launch(server.stream) && server.stream.wait(), "a stale replay");
    const auto seen = server.plan.checkReplays();
    noticed += !seen;
    findings.require(!seen && seen.error().message.find("stale") != std::string::npos,
                     "a replay with a stale plan was not noticed");
    findings.require(server.plan.checkReplays(), "a stale replay is told once");
    server.advance("after a stale replay");
    server.upload();
  }
  return {{"noticed", noticed}};
}

/// Two threads with a stream, a tree and a plan each, and the same kernels.
json checkThreads(const Subject &subject, Findings &findings) {
  // One of them replays, the other enqueues. Captures are the thread's own.
  return {{"steps", decodeInThreads({{&subject, true, 4, 20}, {&subject, false, 9, 21}}, findings)}};
}

/// All GPUs at once: by one thread, which goes to the next one with every call, and by a thread for each.
json checkDevices(const std::vector<Subject> &subjects, Findings &findings) {
  constexpr int kSteps = 20;
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const Subject &subject : subjects) {
    const auto seed = 30 + static_cast<unsigned>(servers.size());
    servers.push_back(std::make_unique<Server>(subject, findings, Decoding::Options{.seed = seed}));
    findings.require(servers.back()->plan.reserve(Decoding::largeRoom()), "reserve");
  }
  for (auto &server : servers)
    server->upload();
  for (std::size_t i = 0; i < servers.size(); ++i)
    graphs.push_back(i % 2 == 0 ? servers[i]->capture(subjects[i]) : nullptr);
  for (int step = 0; step < kSteps; ++step) {
    for (auto &server : servers)
      change(server->decoding, step);
    for (auto &server : servers)
      server->advance("several devices");
    for (auto &server : servers)
      server->upload();
    for (std::size_t i = 0; i < servers.size(); ++i)
      servers[i]->runStep(graphs[i].get());
    for (auto &server : servers)
      if (!server->decoding.judge("several devices"))
        return {};
  }
  std::vector<Decoder> decoders;
  for (const Subject &subject : subjects)
    decoders.push_back({&subject, decoders.size() % 2 == 1, 6, 40 + static_cast<unsigned>(decoders.size())});
  return {{"by_one_thread", kSteps}, {"by_a_thread_each", decodeInThreads(decoders, findings)}};
}

/// The host plans step after step and never waits; results are judged at the end. A replay that forgets the
/// upload is noticed all the same.
json checkPlanningAhead(const Subject &subject, Findings &findings) {
  constexpr int kSteps = 24, kLayers = 2;
  Server server(subject, findings, {.layers = kLayers, .seed = 13}, kLayers);
  findings.require(server.plan.reserve(Decoding::largeRoom()), "reserve");
  server.upload();
  const auto graph = server.capture(subject);
  if (!graph->isReady())
    return {};
  double hostUs = 0;
  for (int step = 0; step < kSteps; ++step) {
    server.decoding.grow(); // while the step before is under way
    hostUs += timeUs([&] {
      server.advance("planning ahead");
      server.upload();
    });
    server.runStep(graph.get());
  }
  server.decoding.judge("planning ahead");
  findings.require(server.plan.checkReplays(), "planning ahead");
  server.decoding.grow();
  findings.require(graph->launch(server.stream) && server.stream.wait(), "a replay without an upload");
  findings.require(!server.plan.checkReplays(), "planning ahead: a replay without an upload was not noticed");
  return {{"steps", server.decoding.judgedSteps()}, {"plan_and_upload_us", hostUs / kSteps}};
}

/// Where a graph has fixed the room, a step that needs more is an error that says so.
json checkRoom(const Subject &subject, Findings &findings) {
  Server server(subject, findings, {.seed = 14});
  server.upload();
  const GpuRoom room = server.plan.room();
  const auto graph = server.capture(subject);
  if (!graph->isReady())
    return {};
  std::string message;
  for (int step = 0; step < 200 && message.empty(); ++step) {
    if (server.plan.queryCount() + 1 > Decoding::kMostQueries)
      break;
    server.decoding.restructure();
    const auto advanced = server.plan.advance(server.decoding.tree());
    if (!advanced)
      message = advanced.error().message;
    else
      server.upload();
  }
  findings.require(message.find("there is room for") != std::string::npos,
                   "a plan beyond the room gave `" + message + "`");
  findings.require(!server.plan.reserve(Decoding::largeRoom()), "the room grew after it was captured");

  GpuPlan larger = GpuPlan::make(subject.attention, server.decoding.tree()).value();
  std::swap(server.plan, larger);
  server.upload();
  server.runStep(nullptr);
  server.decoding.judge("a plan with more room");
  return {{"queries", room.queries}, {"items", room.items}, {"message", message}};
}

} // namespace deft::gpu_test
