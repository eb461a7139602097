#include "tools/deftc/bench/BenchReport.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "tools/deftc/bench/BenchTable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

namespace deft::cli {

using bench::KernelBenchResult;
using bench::Measured;
using bench::Worst;
using nlohmann::json;

namespace {

json toJson(const Measured &measured) {
  json object = {{"config", config::toJson(measured.config)},
                 {"partition", config::partitionName(measured.partition)},
                 {"items", measured.items},
                 {"partial_slots", measured.partialSlots},
                 {"plan_us", measured.planUs},
                 {"first_plan_us", measured.firstPlanUs},
                 {"median_us", measured.medianUs},
                 {"fastest_us", measured.fastestUs},
                 {"slowest_us", measured.slowestUs},
                 {"bytes",
                  {{"cache", measured.io.cache},
                   {"cache_once", measured.io.cacheOnce},
                   {"queries", measured.io.queries},
                   {"outputs", measured.io.outputs},
                   {"partials", measured.io.partials}}}};
  if (measured.warmUs > 0)
    object["warm_us"] = measured.warmUs;
  return object;
}

json toJson(const KernelBenchResult &result) {
  json object = {{"chosen", toJson(result.chosen)},
                 {"right", result.check.passed()},
                 {"error", result.check.error},
                 {"allowed_error", result.check.allowed},
                 {"queries_checked", result.check.queriesChecked}};
  if (result.best)
    object["best"] = toJson(*result.best);
  return object;
}

json toJson(const Worst &worst) {
  return {{"rows", worst.rows},
          {"mean", worst.mean},
          {"worst", worst.worst},
          {"worst_row", worst.worstName},
          {"beyond_limit", worst.beyond}};
}

json toJson(const bench::Summary &summary) {
  json object = {{"over_floor", toJson(summary.overFloor)},
                 {"over_recorded_floor", toJson(summary.overRecordedFloor)},
                 {"over_large_floor", toJson(summary.overLargeFloor)},
                 {"over_peer", toJson(summary.overPeer)},
                 {"over_peer_unscaled", toJson(summary.overRawPeer)},
                 {"scattered_over_contiguous", toJson(summary.scattered)},
                 {"scattered_pages_of_16_over_contiguous", toJson(summary.pages16)},
                 {"warm_over_cold", toJson(summary.warm)},
                 {"over_best", toJson(summary.overBest)}};
  if (summary.overPeer.rows > 0) {
    object["faster_than_peer"] = 1 / summary.overPeer.mean;
    object["faster_than_peer_unscaled"] = 1 / summary.overRawPeer.mean;
    object["largest_loss"] = std::max(0.0, summary.overPeer.worst - 1);
  }
  return object;
}

/// Ratios stand beside the times that they are of.
json toJson(const RowRun &run) {
  const bench::RowScore &score = run.score;
  json object = {
      {"name", run.row.name},
      {"workload", run.row.workload},
      {"attention", run.row.attention},
      {"heads", std::to_string(run.variant.queryHeads) + "/" + std::to_string(run.variant.kvHeads)},
      {"head_dim", run.variant.tensors.k.dim},
      {"dtype", toString(run.variant.tensors.k.dtype)},
      {"page_size", run.variant.cache.pageSize},
      {"cache_bytes", run.contiguous.cacheBytes},
      {"flops", run.contiguous.flops},
      {"cold_us", score.coldUs},
      {"floor_us", score.floorUs},
      {"floor_fraction", score.floorUs / score.coldUs},
      {"roofline_us", run.rooflineUs},
      {"roofline_fraction", run.rooflineUs / score.coldUs},
      {"right", run.wrong().empty()},
      {"seconds", run.seconds},
      {"selection",
       {{"class", run.ruling.treeClass.text()},
        {"rule", config_cache::ruleName(run.ruling.rule())},
        {"why", run.ruling.chosen.why()}}},
      {"contiguous", toJson(run.contiguous)}};
  if (score.warmUs > 0)
    object["warm_us"] = score.warmUs;
  // Of another card, recorded times stand here without a ratio.
  const std::string_view card = bench::recordedCard().model;
  if (run.row.floorUs > 0) {
    object["recorded_floor"] = {{"raw_us", run.row.floorUs}, {"recorded_on", card}};
    if (score.recordedFloorUs > 0)
      object["recorded_floor"]["scaled_us"] = score.recordedFloorUs;
  }
  if (run.row.peerUs > 0) {
    object["peer"] = {{"name", run.row.peer}, {"raw_us", run.row.peerUs}, {"recorded_on", card}};
    object["flat"] = {{"raw_us", run.row.flatUs}};
  }
  if (score.peerUs > 0) {
    object["peer"]["scaled_us"] = score.peerUs;
    object["faster_than_peer"] = score.peerUs / score.coldUs;
    object["faster_than_peer_unscaled"] = score.rawPeerUs / score.coldUs;
  }
  if (run.scattered) {
    object["scattered"] = toJson(*run.scattered);
    object["scattered_over_contiguous"] = score.scatteredUs / score.coldUs;
  }
  if (run.pages16) {
    object["scattered_pages_of_16"] = toJson(*run.pages16);
    object["scattered_pages_of_16_over_contiguous"] = score.pages16Us / score.coldUs;
  }
  return object;
}

json toJson(const VariantRun &run) {
  return {{"tree", run.tree},
          {"variant", run.variant},
          {"bound_by", run.isBoundByFlops ? "flops" : "bytes"},
          {"plain_us", run.plainUs},
          {"cold_us", run.us},
          {"ratio", run.ratio()},
          {"ratios", run.ratios},
          {"limit", run.limit},
          {"right", run.isRight}};
}

json toJson(const bench::Yardstick &yardstick) {
  json object = {{"read_scale", yardstick.readScale()},
                 {"product_scale", yardstick.productScale(spec::DType::F16)},
                 {"product_tflops_f16", yardstick.productTFlops(spec::DType::F16)},
                 {"product_tflops_bf16", yardstick.productTFlops(spec::DType::BF16)}};
  if (const auto *recorded = yardstick.recorded())
    object["recorded"] = {{"model", recorded->model},
                          {"launch_us", recorded->ceilings.launchUs},
                          {"product_tflops_f16", recorded->product.f16},
                          {"product_tflops_bf16", recorded->product.bf16},
                          {"units_tflops_f16", recorded->ceilings.units.f16},
                          {"units_tflops_bf16", recorded->ceilings.units.bf16}};
  if (!yardstick.measured())
    return object;
  const bench::MeasuredCeilings &measured = *yardstick.measured();
  object["launch_us"] = measured.launchUs;
  object["units_tflops_f16"] = measured.units.f16;
  object["units_tflops_bf16"] = measured.units.bf16;
  for (const bench::ReadTime &read : measured.reads)
    object["cold_reads"].push_back({{"mib", read.mib},
                                    {"loads_us", read.loadsUs},
                                    {"bulk_us", read.bulkUs > 0 ? json(read.bulkUs) : json()}});
  return object;
}

/// The words of this process's call; empty where the system does not tell.
std::string commandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  while (!words.empty() && words.back() == '\0')
    words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

/// The kernel driver's version, "580.159.04"; empty where the system does not tell.
std::string kernelDriver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line);
  while (words >> word)
    if (std::count(word.begin(), word.end(), '.') > 0 && std::isdigit(static_cast<unsigned char>(word[0])))
      return word;
  return {};
}

} // namespace

json headOfReport(const KernelBenchFlags &flags) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  json object = {{"format", "deftc-bench"},
                 {"version", 1},
                 {"deftc", DEFT_VERSION},
                 {"seconds_since_epoch", now.time_since_epoch().count()},
                 {"command", commandLine()},
                 {"options",
                  {{"repeats", flags.repeats},
                   {"seed", flags.seed},
                   {"quick", flags.quick},
                   {"explore", flags.explore},
                   {"partition", flags.partition},
                   {"chunk", flags.chunk},
                   {"tile", flags.tileQ},
                   {"untuned", flags.untuned},
                   {"only", flags.only}}}};
  if (!flags.commit.empty())
    object["commit"] = flags.commit;
  return object;
}

json toJson(const BenchReport &report, const KernelBenchFlags &flags, const BenchMachine &machine) {
  const device::Device &device = machine.device();
  const int cuda = device.driver().version();
  json suites = json::array(), variants = json::array();
  for (const SuiteRuns &suite : report.suites) {
    json rows = json::array();
    for (const RowRun &run : suite.rows)
      rows.push_back(toJson(run));
    suites.push_back(
        {{"name", suite.name}, {"summary", toJson(bench::summarize(scoresOf(suite.rows)))}, {"rows", rows}});
  }
  for (const VariantRun &run : report.variants)
    variants.push_back(toJson(run));
  json object = headOfReport(flags);
  object["complete"] = report.isComplete;
  object["device"] = {{"name", device.facts().name},
                      {"multiprocessors", device.facts().multiprocessors},
                      {"driver", kernelDriver()},
                      {"cuda", std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10)}};
  object["ceilings"] = toJson(machine.yardstick());
  object["suites"] = suites;
  if (!variants.empty())
    object["variants"] = variants;
  return object;
}

} // namespace deft::cli
