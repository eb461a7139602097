#include "tools/deftc/run/RunReport.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace deft::cli {

using nlohmann::json;

namespace {

/// Microseconds throughout, so that two lines can be compared at a glance.
std::string micros(double us) {
  return us < 100 ? rounded(us, 1) + " us" : withSeparators(std::llround(us)) + " us";
}
std::string error(double value) { return significant(value, 2); }

std::string cacheName(const spec::CacheSpec &cache) {
  if (!cache.isPaged())
    return "contiguous cache";
  return "pages of " + std::to_string(cache.pageSize) +
         (cache.order == spec::PageOrder::Nhd ? " nhd" : " hnd");
}

std::string configText(const RunReport &report) {
  const config::Config &config = report.config;
  const std::string asked = config::partitionName(config.partition),
                    made = config::partitionName(report.partition);
  const std::string text = asked + (asked == made ? "" : " chose " + made) + ", chunk " +
                           (config.chunkTokens > 0 ? std::to_string(config.chunkTokens) : "unlimited");
  return text + "; " + phasesText(config);
}

double medianOf(const std::vector<RunReport::Step> &steps, bool isAdvanced) {
  std::vector<double> times;
  for (const RunReport::Step &step : steps)
    if (step.isAdvanced == isAdvanced)
      times.push_back(step.planUs);
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

std::string stepsText(const RunReport &report) {
  const auto advanced = std::count_if(report.steps.begin(), report.steps.end(),
                                      [](const RunReport::Step &step) { return step.isAdvanced; });
  const auto made = static_cast<long long>(report.steps.size()) - advanced;
  double us = 0;
  for (const RunReport::Step &step : report.steps)
    us += step.runUs;
  return withSeparators(static_cast<long long>(report.steps.size())) + ", " +
         micros(us / static_cast<double>(report.steps.size())) + " each on average; planned again " +
         counted(made, "time", "times") + " (" + micros(medianOf(report.steps, false)) + "), advanced " +
         counted(advanced, "time", "times") +
         (advanced > 0 ? " (" + micros(medianOf(report.steps, true)) + ")" : "") +
         "; the other lines are of the last";
}

/// How much of all (row, token) pairs counting inputs have told apart.
std::string countText(const reference::CountReport &count) {
  const bool isAll = count.noticeable == count.pairs && count.passes == count.allPasses;
  const double share = count.pairs > 0 ? static_cast<double>(count.noticeable) /
                                             static_cast<double>(count.pairs) * count.passes / count.allPasses
                                       : 1;
  return isAll ? "each token of each row counted" : rounded(100 * share, 1) + " % of their tokens counted";
}

std::string checkText(const RunReport &report) {
  const reference::CheckReport &check = *report.check;
  if (!check.isDefined())
    return "UNDEFINED: " + reference::explainFailure(check);
  std::string text = check.passed() ? "right: error " : "WRONG: error ";
  text += error(check.error) + ", allowed " + error(check.allowed);
  if (check.hasLse)
    text += "; lse off by " + error(check.lseError) + ", allowed " + error(check.lseAllowed);
  text += report.queriesChecked == report.queriesRun
              ? "; all " + counted(report.queriesRun, "query", "queries")
              : "; a sample of " + withSeparators(report.queriesChecked) + " of " +
                    counted(report.queriesRun, "query", "queries");
  if (check.count)
    text += check.count->passed() ? "; " + countText(*check.count) : "; tokens skipped or read twice";
  const bool isAllCounted = !check.count || check.count->passes == check.count->allPasses;
  if (report.queriesChecked != report.queriesRun || !isAllCounted)
    text += " (--check=all checks all)";
  return text;
}

/// JSON has no infinity; an error that is infinite or absent is null.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

} // namespace

double RunReport::cacheBytes() const {
  return static_cast<double>(visible.tokens) * variant.kvHeads * variant.tensors.cacheBytes();
}

double RunReport::readBytes() const {
  return static_cast<double>(readTokens) * variant.kvHeads * variant.tensors.cacheBytes();
}

double RunReport::planBytes() const {
  const auto kind = backend == "cpu" ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
  const spec::Tensors &tensors = variant.tensors;
  const double queryBytes =
      static_cast<double>(variant.queryHeads) * (tensors.q.rowBytes() + tensors.out.rowBytes());
  const double partialBytes =
      variant.queryHeads * static_cast<double>(plan::partialRowBytes(plan::VariantFacts::of(variant, kind)));
  return static_cast<double>(plan.itemTokens) * variant.kvHeads * tensors.cacheBytes() +
         queryBytes * tree.queries + 2 * partialBytes * plan.partialSlots; // written and read
}

double RunReport::readShare() const {
  return readBandwidth > 0 ? std::min(1.0, readBytes() / readBandwidth / (times.medianUs * 1e-6)) : 0;
}

double RunReport::flops() const {
  return static_cast<double>(visible.pairs) * variant.queryHeads * variant.tensors.pairFlops();
}

void printReport(const RunReport &report, std::ostream &out) {
  const spec::Variant &v = report.variant;
  const auto line = [&](const char *name, const std::string &text) {
    char label[16];
    std::snprintf(label, sizeof label, "%-9s", name);
    out << label << text << '\n';
  };
  line("spec", v.name + ": " + spec::dtypeText(v.tensors) + ", heads " + std::to_string(v.queryHeads) + "/" +
                   std::to_string(v.kvHeads) + ", head dim " + spec::dimText(v.tensors) + ", " +
                   cacheName(v.cache));
  line("tree", report.treePath + ": " + counted(report.tree.nodes, "node", "nodes") + " in " +
                   counted(report.tree.levels, "level", "levels") + ", " +
                   counted(report.tree.queries, "query", "queries") + ", " +
                   counted(report.tree.tokens, "token", "tokens") + ", each read by " +
                   significant(report.tree.sharing(), 3) + " queries");
  line("config", configText(report));
  line("chosen", rulingText(report.ruling) + (report.isAsked ? "; with your changes" : ""));
  const std::string dealt = report.plan.dealtItems > 0
                                ? ", " + withSeparators(report.plan.dealtItems) + " deal tokens to warps"
                                : "";
  line("plan", counted(report.plan.items, "item", "items") + " (" + withSeparators(report.plan.directItems) +
                   " without merging" + dealt + "), " +
                   counted(report.plan.partialSlots, "partial result", "partial results") + " merged for " +
                   counted(report.plan.mergedQueries, "query", "queries") + ", " +
                   withSeparators(report.plan.itemTokens) + " tokens read; made in " +
                   micros(report.steps.back().planUs));
  line("backend", report.backend + ": " + report.device + ", pages " + report.pages +
                      (report.inputs.empty() ? ", seed " + std::to_string(report.seed)
                                             : ", inputs of " + report.inputs));
  if (report.steps.size() > 1)
    line("steps", stepsText(report));
  const RunTimes &times = report.times;
  line("time", micros(times.medianUs) + ", the median of " + std::to_string(times.repeats) + " (" +
                   micros(times.fastestUs) + " to " + micros(times.slowestUs) + ")" +
                   (report.backend == "cuda" ? ", L2 cold" : ""));
  line("bytes", bytesOf(report.readBytes()) + " of cache read, " + bytesOf(report.planBytes()) +
                    " moved in all; " + significant(report.flops() / times.medianUs * 1e-3, 3) + " GFLOP/s");
  const std::string bound =
      report.isBoundByProducts
          ? ", compute-bound (" + rounded(report.flops() / report.readBytes(), 0) + " FLOP/byte)"
          : "";
  if (report.readBandwidth > 0)
    line("read", rounded(report.readBandwidth * 1e-9, 1) +
                     " GB/s for a plain read of the same tokens; the run reaches " +
                     rounded(100 * report.readShare(), 0) + " %" + bound);
  if (report.floorUs)
    line("floor", micros(*report.floorUs) + " on an " + report.ceilingModel + "; the time is " +
                      rounded(times.medianUs / *report.floorUs, 2) + " times that" + bound);
  if (report.check)
    line("check", checkText(report));
  if (report.selected)
    line("select", selectionText(*report.selected, *v.select));
  if (report.selected && report.selected->shape)
    line("", sparseShapeText(*report.selected->shape));
  if (report.selected && report.selected->check)
    line("", selectionCheckText(*report.selected));
}

json toJson(const RunReport &report) {
  const spec::Variant &v = report.variant;
  json result = {
      {"format", "deftc-run"},
      {"version", 1},
      {"spec",
       {{"name", v.name},
        {"dtype", spec::toString(v.tensors.k.dtype)},
        {"query_heads", v.queryHeads},
        {"kv_heads", v.kvHeads},
        {"head_dim", v.tensors.k.dim}, // value_dim and value_in_key came later
        {"value_dim", v.tensors.v.dim},
        {"value_in_key", v.tensors.valueInKey},
        {"page_size", v.cache.pageSize}}},
      {"tree",
       {{"path", report.treePath},
        {"nodes", report.tree.nodes},
        {"roots", report.tree.roots},
        {"levels", report.tree.levels},
        {"queries", report.tree.queries},
        {"tokens", report.tree.tokens},
        {"read_tokens", report.tree.readTokens},
        {"path_tokens", report.tree.pathTokens}}},
      {"config", config::toJson(report.config)},
      {"selection", config_cache::toJson(report.ruling)},
      {"plan",
       {{"items", report.plan.items},
        {"direct_items", report.plan.directItems},
        {"dealt_items", report.plan.dealtItems},
        {"item_tokens", report.plan.itemTokens},
        {"row_tokens", report.plan.rowTokens},
        {"partial_slots", report.plan.partialSlots},
        {"merged_queries", report.plan.mergedQueries},
        {"partition", config::partitionName(report.partition)},
        {"plan_us", report.steps.back().planUs}}},
      {"backend", report.backend},
      {"device", report.device},
      {"pages", report.pages},
      {"seed", report.seed},
      {"inputs", report.inputs.empty() ? json(nullptr) : json(report.inputs)},
      {"cache_bytes", report.cacheBytes()},
      {"read_bytes", report.readBytes()},
      {"bound_by_products", report.isBoundByProducts},
      {"flops", report.flops()},
      {"time",
       {{"repeats", report.times.repeats},
        {"median_us", report.times.medianUs},
        {"fastest_us", report.times.fastestUs},
        {"slowest_us", report.times.slowestUs}}},
      {"plan_bytes", report.planBytes()},
      {"steps", json::array()},
  };
  for (const RunReport::Step &step : report.steps)
    result["steps"].push_back(
        {{"plan_us", step.planUs}, {"advanced", step.isAdvanced}, {"run_us", step.runUs}});
  if (report.readBandwidth > 0)
    result["read"] = {{"gb_per_s", report.readBandwidth * 1e-9}, {"share", report.readShare()}};
  if (report.floorUs)
    result["floor"] = {{"us", *report.floorUs}, {"model", report.ceilingModel}};
  if (report.selected)
    result["select"] = toJson(*report.selected);
  if (report.check) {
    const reference::CheckReport &check = *report.check;
    result["check"] = {{"passed", check.passed()},
                       {"error", finite(check.error)},
                       {"plain_error", finite(check.plainError)},
                       {"allowed", finite(check.allowed)},
                       {"worst_query", check.worstQuery},
                       {"worst_head", check.worstHead},
                       {"not_finite", check.notFinite.empty() ? json(nullptr) : json(check.notFinite)},
                       {"rows", check.rows},
                       {"undefined_rows", check.undefinedRows},
                       {"rows_that_see_nothing", check.blindRows},
                       {"queries_checked", report.queriesChecked},
                       {"queries", report.queriesRun}};
    if (check.hasLse)
      result["check"]["lse_error"] = finite(check.lseError);
    if (check.count)
      result["check"]["count"] = {{"passes", check.count->passes},
                                  {"all_passes", check.count->allPasses},
                                  {"pairs", check.count->pairs},
                                  {"told", check.count->noticeable},
                                  {"wrong_rows", check.count->wrongRows}};
  }
  return result;
}

} // namespace deft::cli
