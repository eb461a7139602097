#include "tools/deftc/RunReport.h"

#include "compiler/config/ConfigJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace deft::cli {

using nlohmann::json;

namespace {

/// 1234567 as 1,234,567.
std::string grouped(long long value) {
  std::string text = std::to_string(value);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

std::string plural(long long count, const char *one, const char *many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

std::string formatted(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Microseconds throughout, so that two lines can be compared at a glance.
std::string micros(double us) {
  return us < 100 ? formatted("%.1f us", us) : grouped(std::llround(us)) + " us";
}
std::string error(double value) { return formatted("%.2g", value); }
const char *dtypeName(spec::DType dtype) { return dtype == spec::DType::BF16 ? "bf16" : "f16"; }

std::string cacheName(const spec::CacheSpec &cache) {
  if (!cache.paged)
    return "contiguous cache";
  return "pages of " + std::to_string(cache.pageSize) +
         (cache.order == spec::PageOrder::Nhd ? " nhd" : " hnd");
}

std::string configText(const config::Config &config) {
  std::string text = config::partitionName(config.partition) + ", chunk " +
                     (config.chunkTokens > 0 ? std::to_string(config.chunkTokens) : "open");
  for (const config::PhaseConfig &phase : config.phases)
    text += "; " + phase.name + " " + std::to_string(phase.tileQ) + " rows x " +
            std::to_string(phase.tileKv) + " tokens, " + std::to_string(phase.stages) + " stages, " +
            std::to_string(phase.warps) + " warps";
  return text;
}

std::string checkText(const reference::CheckReport &check) {
  std::string text = check.passed() ? "right: error " : "WRONG: error ";
  text += error(check.error) + ", allowed " + error(check.allowed);
  if (check.hasLse)
    text += "; lse off by " + error(check.lseError) + ", allowed " + error(reference::kLseTolerance);
  text += check.queriesChecked == check.queries
              ? "; all " + plural(check.queries, "query", "queries")
              : "; " + grouped(check.queriesChecked) + " of " + plural(check.queries, "query", "queries");
  return text;
}

/// JSON has no infinity; an error that is infinite or absent is null.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

} // namespace

double RunReport::cacheBytes() const {
  return 2.0 * 2 * variant.kvHeads * variant.headDim * static_cast<double>(tree.readTokens);
}

double RunReport::flops() const {
  return 4.0 * variant.queryHeads * variant.headDim * static_cast<double>(tree.pathTokens);
}

void printReport(const RunReport &report, std::ostream &out) {
  const spec::Variant &v = report.variant;
  const auto line = [&](const char *name, const std::string &text) {
    char label[16];
    std::snprintf(label, sizeof label, "%-9s", name);
    out << label << text << '\n';
  };
  line("spec", v.name + ": " + dtypeName(v.dtype) + ", heads " + std::to_string(v.queryHeads) + "/" +
                   std::to_string(v.kvHeads) + ", head dim " + std::to_string(v.headDim) + ", " +
                   cacheName(v.cache));
  line("tree", report.treePath + ": " + plural(report.tree.nodes, "node", "nodes") + " in " +
                   plural(report.tree.levels, "level", "levels") + ", " +
                   plural(report.tree.queries, "query", "queries") + ", " +
                   plural(report.tree.tokens, "token", "tokens") + ", each read by " +
                   formatted("%.3g", report.tree.sharing()) + " queries");
  line("config", configText(report.config));
  line("plan", plural(report.plan.items, "item", "items") + " (" + grouped(report.plan.directItems) +
                   " write the output), " + plural(report.plan.partialSlots, "partial", "partials") +
                   " merged for " + plural(report.plan.mergedQueries, "query", "queries") + ", " +
                   grouped(report.plan.itemTokens) + " tokens read; made in " + micros(report.planUs));
  line("backend", report.backend + ": " + report.device + ", pages " + report.pages + ", seed " +
                      std::to_string(report.seed));
  line("time", micros(report.medianUs) + ", the median of " + std::to_string(report.repeats) + " (" +
                   micros(report.fastestUs) + " to " + micros(report.slowestUs) + ")" +
                   (report.backend == "cuda" ? ", L2 cold" : ""));
  if (report.floorUs)
    line("floor", micros(*report.floorUs) + " on an " + report.ceilingModel + "; the time is " +
                      formatted("%.2f", report.medianUs / *report.floorUs) + " times that");
  if (report.check)
    line("check", checkText(*report.check));
}

json toJson(const RunReport &report) {
  const spec::Variant &v = report.variant;
  json result = {
      {"format", "deftc-run"},
      {"version", 1},
      {"spec",
       {{"name", v.name},
        {"dtype", dtypeName(v.dtype)},
        {"query_heads", v.queryHeads},
        {"kv_heads", v.kvHeads},
        {"head_dim", v.headDim},
        {"page_size", v.cache.paged ? v.cache.pageSize : 0}}},
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
      {"plan",
       {{"items", report.plan.items},
        {"direct_items", report.plan.directItems},
        {"item_tokens", report.plan.itemTokens},
        {"row_tokens", report.plan.rowTokens},
        {"partial_slots", report.plan.partialSlots},
        {"merged_queries", report.plan.mergedQueries},
        {"plan_us", report.planUs}}},
      {"backend", report.backend},
      {"device", report.device},
      {"pages", report.pages},
      {"seed", report.seed},
      {"cache_bytes", report.cacheBytes()},
      {"flops", report.flops()},
      {"time",
       {{"repeats", report.repeats},
        {"median_us", report.medianUs},
        {"fastest_us", report.fastestUs},
        {"slowest_us", report.slowestUs}}},
  };
  if (report.floorUs)
    result["floor"] = {{"us", *report.floorUs}, {"model", report.ceilingModel}};
  if (report.check) {
    const reference::CheckReport &check = *report.check;
    result["check"] = {{"passed", check.passed()},
                       {"error", finite(check.error)},
                       {"plain_error", finite(check.plainError)},
                       {"allowed", finite(check.allowed)},
                       {"worst_query", check.worstQuery},
                       {"worst_head", check.worstHead},
                       {"queries_checked", check.queriesChecked},
                       {"queries", check.queries}};
    if (check.hasLse)
      result["check"]["lse_error"] = finite(check.lseError);
  }
  return result;
}

} // namespace deft::cli
