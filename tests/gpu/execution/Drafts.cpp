#include "tests/gpu/execution/Checks.h"
#include "tests/gpu/execution/DraftedServer.h"

#include <algorithm>

namespace deft::gpu_test {

using nlohmann::json;

namespace {

constexpr int kSlack = 40;

/// Microseconds of a replay among many.
double replayUs(const Graph &graph, const Stream &stream, int replays) {
  const double us = timeUs([&] {
    for (int i = 0; i < replays; ++i)
      (void)graph.launch(stream);
    (void)stream.wait();
  });
  return us / replays;
}

/// The least of several: others use the GPU's host, too.
double leastUs(const Graph &graph, const Stream &stream) {
  double least = 1e9;
  for (int round = 0; round < 7; ++round)
    least = std::min(least, replayUs(graph, stream, 200));
  return least;
}

/// Not a cache of single tokens, which has no rows, and no attention that asks how deep nodes are.
std::string whyLeftOut(const Subject &subject) {
  if (subject.attention.attention().pageSize() == 0)
    return "the cache has no pages";
  const auto batch = PagedBatch::make({.pageSize = subject.attention.attention().pageSize()}).value();
  const auto plan = batch.plan(subject.attention);
  return plan ? "" : plan.error().message;
}

} // namespace

/// One graph, replayed while only the GPU knows lengths and which drafts see which: the host plans anew where
/// the slack ends or there are other numbers of drafts.
json checkDrafts(const Subject &subject, Findings &findings) {
  if (const std::string why = whyLeftOut(subject); !why.empty())
    return {{"left_out", why}};
  const bool isFake = subject.gpu.facts().name.starts_with("Fake"); // computes on the host
  const int steps = isFake ? 40 : 1000, most = isFake ? 40 : 256;
  const Stream stream(subject.device);
  DraftedServer server(subject, findings, stream, {.mostDrafts = most, .seed = 21});
  const auto drawTrees = [&] {
    for (int r = 0; r < server.requests(); ++r)
      server.setTree(r, test::anyDraftTree(most, server.random()));
    if (!isFake) { // these come in any case
      server.setTree(0, test::jetSpecTree(255, server.random()));
      server.setTree(1, test::jetSpecTree(128, server.random()));
      server.setTree(2, test::eagleTree(server.random()));
    }
  };
  drawTrees();
  server.updateBatch();
  auto made = server.batch().plan(subject.attention, {.followsLengths = true, .slack = kSlack});
  if (!made && made.error().code == ErrorCode::Environment)
    return {{"left_out", made.error().message}};
  if (!findings.require(made, "a plan with drafts"))
    return {};
  GpuPlan &plan = *made;
  findings.require(
      plan.reserve({.queries = server.requests() * most, .items = 3000, .runs = 60'000, .partials = 12'000}),
      "reserve");
  findings.require(plan.upload(stream.get()), "the plan");
  const Graph graph(subject.device, stream,
                    [&] { return server.enqueueDraft(plan) && server.enqueueRun(plan); });
  if (!findings.require(graph.isReady(), "the capture of a graph"))
    return {};

  std::vector<int> known(static_cast<std::size_t>(server.requests()));
  const auto hear = [&] {
    for (int r = 0; r < server.requests(); ++r)
      known[static_cast<std::size_t>(r)] = server.length(r);
  };
  hear();
  int plans = 0, judged = 0;
  for (int step = 0; step < steps; ++step) {
    bool isServed = step % 64 != 63;
    for (int r = 0; r < server.requests(); ++r) {
      const int more = static_cast<int>(server.random()() % 4);
      if (!server.isFull(r, more))
        server.lengthen(r, more);
      isServed = isServed && server.length(r) - known[static_cast<std::size_t>(r)] <= kSlack;
      server.setTree(r, test::draftTreeOf(static_cast<int>(server.tree(r).size()), server.random()));
    }
    if (!isServed) {
      findings.require(stream.wait(), "replays");
      drawTrees();
      server.updateBatch();
      findings.require(plan.advance(server.batch().tree()), "a new plan");
      findings.require(plan.upload(stream.get()), "the plan");
      hear();
      ++plans;
    }
    if (step % 8 != 0 && isServed) {
      findings.require(graph.launch(stream), "a replay"); // of the step before's masks
      continue;
    }
    server.beginStep();
    findings.require(graph.launch(stream), "a replay");
    ++judged;
    if (!server.judge("drafts on the device, replay " + std::to_string(step)) ||
        !findings.require(plan.checkReplays(), "drafts on the device"))
      break;
  }
  server.lengthen(0, kSlack + 1);
  server.beginStep();
  findings.require(graph.launch(stream) && stream.wait(), "a replay");
  findings.require(!plan.checkReplays(), "a length that the plan does not serve was not noticed");
  return {{"replays", steps}, {"plans", plans}, {"judged", judged}};
}

/// What it costs that the host does not know the tree: the run of a layer beside that of the same tree known
/// to the host, and the kernel that reads the mask, once a step. In the cache of one layer, warm.
json measureDrafts(const Subject &subject, Findings &findings) {
  if (const std::string why = whyLeftOut(subject); !why.empty())
    return {{"left_out", why}};
  struct Row {
    const char *name;
    int requests, prompt, own;
    test::DraftParents (*tree)(std::mt19937 &);
  };
  using Random = std::mt19937;
  const Row rows[] = {
      {"SP_t32", 1, 0, 4000, [](Random &random) { return test::draftTree(32, 8, 8, random); }},
      {"SP_t64", 1, 0, 4000, [](Random &random) { return test::draftTree(64, 8, 8, random); }},
      {"SP_t128", 1, 0, 4000, [](Random &random) { return test::draftTree(128, 10, 8, random); }},
      {"SP_t256", 1, 0, 4000, [](Random &random) { return test::draftTree(256, 12, 8, random); }},
      {"eagle_60", 1, 0, 4000, [](Random &random) { return test::eagleTree(random); }},
      {"jetspec_128", 1, 0, 4000, [](Random &random) { return test::jetSpecTree(128, random); }},
      {"jetspec_255", 1, 0, 4000, [](Random &random) { return test::jetSpecTree(255, random); }},
      {"b64_t8", 64, 4000, 500, [](Random &random) { return test::draftTree(8, 4, 4, random); }},
      {"b64_t16", 64, 4000, 500, [](Random &random) { return test::draftTree(16, 5, 4, random); }},
  };
  json facts = json::array();
  for (const Row &row : rows) {
    const Stream stream(subject.device);
    DraftedServer server(subject, findings, stream,
                         {.requests = row.requests,
                          .promptTokens = row.prompt,
                          .ownTokens = row.own,
                          .roomTokens = row.prompt + row.own + 320,
                          .mostDrafts = 256,
                          .seed = 3});
    for (int r = 0; r < row.requests; ++r)
      server.setTree(r, row.tree(server.random()));
    server.updateBatch();
    const Tree known = server.knownTree();
    auto drafted = server.batch().plan(subject.attention);
    if (!drafted && drafted.error().code == ErrorCode::Environment)
      return {{"left_out", drafted.error().message}};
    auto host = GpuPlan::make(subject.attention, known);
    if (!findings.require(drafted, "a plan with drafts") || !findings.require(host, "a plan"))
      return facts;
    findings.require(drafted->upload(stream.get()), "the plan");
    findings.require(host->upload(stream.get()), "the plan");
    server.beginStep();
    DraftMask mask = server.mask();
    mask.lengths = nullptr;
    findings.require(drafted->draft(mask, stream.get()), "the mask");
    const Graph hostRun(subject.device, stream, [&] { return server.enqueueRun(*host); });
    const Graph draftedRun(subject.device, stream, [&] { return server.enqueueRun(*drafted); });
    const Graph maskAlone(subject.device, stream,
                          [&] { return findings.require(drafted->draft(mask, stream.get()), "the mask"); });
    if (!findings.require(hostRun.isReady() && draftedRun.isReady() && maskAlone.isReady(), "a graph"))
      return facts;
    (void)hostRun.launch(stream);
    server.judge(std::string(row.name) + ", known to the host");
    server.beginStep();
    findings.require(maskAlone.launch(stream) && draftedRun.launch(stream), "a run");
    server.judge(std::string(row.name) + ", known to the device");
    const double hostUs = leastUs(hostRun, stream), draftedUs = leastUs(draftedRun, stream),
                 maskUs = leastUs(maskAlone, stream);
    facts.push_back({{"row", row.name},
                     {"host_us", hostUs},
                     {"device_us", draftedUs},
                     {"times", draftedUs / hostUs},
                     {"mask_us", maskUs},
                     {"host_items", host->summary().items},
                     {"device_items", drafted->summary().items},
                     {"host_partials", host->summary().partials},
                     {"device_partials", drafted->summary().partials}});
  }
  return facts;
}

} // namespace deft::gpu_test
