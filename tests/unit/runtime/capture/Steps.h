#pragma once

#include "runtime/capture/Step.h"

/// Captured steps for tests.
namespace deft::test {

/// A prompt of 40 tokens with two branches in pages of 16, captured on a processor.
inline capture::Step branches() {
  capture::Step step;
  step.version = "0.3.0";
  step.device = {config::DeviceKind::Cpu, "x86-64-v3", 256, 2, "A Processor"};
  step.attention = "a";
  step.spec = {{"spec.deft", "attention a {\n  query_heads = 4; kv_heads = 2; head_dim = 64;\n}\n"}};
  exec::ParamValue slope, width;
  slope.f32 = {0.5f, 0.25f};
  width.i32 = {7};
  step.params = {{"slope", slope}, {"width", width}};
  step.paramsLeftOut = {"doc"};
  step.run = capture::RunFacts{
      .hasLse = true, .qStride = 256, .outStride = 256, .cache = {{2048, 128, 64}, {2048, 128, 64}}};
  step.config.phases = {{"rows", -1, config::Family::Sm80, 16, 64, 1, 1}};
  step.reason = {"heuristic", "c1-t1", "no tuned config; chosen by the cost model", ""};
  step.plan = {false, 2, 5, 4, 60};
  step.planUs = 12.5;
  step.runUs = 100;
  step.pageSize = 16;
  step.pageTable = std::vector<capture::PageStretch>{{0, 7, 2}, {2, 3, 1}, {8, 4, 1}};
  (void)step.tree.addNode(-1, 40, 0);
  (void)step.tree.addNode(0, 6, 40);
  (void)step.tree.addNode(0, 9, 130);
  (void)step.tree.addQuery(1);
  (void)step.tree.addQuery(2);
  return step;
}

/// A request of 20 tokens with three drafts, two of which follow the first.
inline capture::Step drafted() {
  capture::Step step = branches();
  step.pageTable = std::vector<capture::PageStretch>{{0, 0, 2}};
  step.tree = {};
  (void)step.tree.addNode(-1, 20, 0);
  (void)step.tree.addNode(0, 3, 20); // stands for the drafts
  for (int i = 0; i < 3; ++i)
    (void)step.tree.addQuery(1);
  step.drafts = {{.request = {.request = 0, .firstQuery = 0, .count = 3, .length = 20, .location = 20},
                  .sees = {{0}, {0, 1}, {0, 2}}}};
  return step;
}

} // namespace deft::test
