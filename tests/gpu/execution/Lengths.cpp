#include "tests/gpu/execution/Checks.h"
#include "tests/gpu/execution/Decoding.h"

namespace deft::gpu_test {

using nlohmann::json;

namespace {

constexpr int kSlack = 40;

/// How many tokens each query sees.
std::vector<int> lengthsOf(const Tree &tree) {
  std::vector<int> lengths;
  for (int query = 0; query < tree.queryCount(); ++query) {
    int length = 0;
    for (int node = tree.query(query).node; node >= 0; node = tree.node(node).parent)
      length += tree.node(node).tokens;
    lengths.push_back(length);
  }
  return lengths;
}

/// Microseconds of a replay among many.
double replayUs(const Graph &graph, const Stream &stream) {
  constexpr int kReplays = 300;
  const double us = timeUs([&] {
    for (int i = 0; i < kReplays; ++i)
      (void)graph.launch(stream);
    (void)stream.wait();
  });
  return us / kReplays;
}

} // namespace

/// One graph, replayed while requests grow on the device alone: the host's plan is of an older tree, whose
/// leaves are as long as they were when the slack last ended.
json checkLengths(const Subject &subject, Findings &findings) {
  // The tests' driver computes on the host.
  const int steps = subject.gpu.facts().name.starts_with("Fake") ? 100 : 1000;
  const Stream stream(subject.device);
  Decoding decoding(subject, findings, stream, {.layers = 1, .seed = 15});
  auto table = GpuPageTable::make(subject.gpu, Decoding::kTablePages).value();
  Tree planned = decoding.tree(); // as the host knows it; the other one goes on
  auto made = GpuPlan::make(subject.attention, planned, {.followsLengths = true, .slack = kSlack});
  if (!made && made.error().code == ErrorCode::Environment)
    return {{"left_out", made.error().message}};
  if (!findings.require(made, "a plan that follows lengths"))
    return {};
  GpuPlan &plan = *made;
  findings.require(plan.reserve(Decoding::largeRoom()), "reserve");
  device::Buffer lengths(subject.device);
  findings.require(lengths.upload(lengthsOf(planned), "lengths"), "the lengths");
  findings.require(table.upload(decoding.sequences(), stream.get()), "the page table");
  findings.require(plan.upload(stream.get()), "the plan");
  const Graph plain(subject.device, stream, [&] { return decoding.enqueueRuns(plan, table); });
  const Graph graph(subject.device, stream, [&] {
    return findings.require(plan.follow(lengths.as<int>(), stream.get()), "follow") &&
           decoding.enqueueRuns(plan, table);
  });
  if (!findings.require(plain.isReady() && graph.isReady(), "the capture of a graph"))
    return {};

  std::mt19937 random(16);
  int plans = 0, judged = 0;
  std::vector<int> known = lengthsOf(planned);
  for (int step = 0; step < steps; ++step) {
    decoding.grow();
    std::vector<int> now = lengthsOf(decoding.tree());
    bool isServed = true;
    for (std::size_t i = 0; i < now.size(); ++i)
      isServed = isServed && now[i] - known[i] <= kSlack;
    for (const int node : planned.nodesInPreorder()) // who outgrows its place in the page table is moved
      isServed = isServed && decoding.tree().node(node).location == planned.node(node).location;
    if (!isServed) { // the host hears of the lengths, and of no replay that is under way
      findings.require(stream.wait(), "replays");
      planned = decoding.tree();
      known = now;
      findings.require(plan.advance(planned), "a new plan");
      findings.require(plan.upload(stream.get()), "the plan");
      ++plans;
    }
    findings.require(stream.wait() && lengths.upload(now, "lengths").ok(), "the lengths");
    findings.require(table.upload(decoding.sequences(), stream.get()), "the page table");
    if (random() % 16 != 0) {
      findings.require(graph.launch(stream), "a replay");
      continue;
    }
    decoding.beginStep();
    findings.require(graph.launch(stream), "a replay");
    decoding.endStep();
    ++judged;
    if (!decoding.judge("lengths on the device, replay " + std::to_string(step)) ||
        !findings.require(plan.checkReplays(), "lengths on the device"))
      break;
  }
  const double with = replayUs(graph, stream), without = replayUs(plain, stream);
  known[0] -= 1; // more than is served would be read to the end of the slack, where this cache has no page
  findings.require(lengths.upload(known, "lengths").ok() && graph.launch(stream) && stream.wait(),
                   "a replay");
  findings.require(!plan.checkReplays(), "a length that the plan does not serve was not noticed");
  return {{"replays", steps},
          {"plans", plans},
          {"judged", judged},
          {"replay_us", with},
          {"without_follow_us", without}};
}

} // namespace deft::gpu_test
