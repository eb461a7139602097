#include "runtime/c_api/PlanParts.h"

#include "runtime/c_api/Made.h"
#include "runtime/c_api/Sized.h"

namespace deft::c {

namespace {

/// Number by number: those of C are kept, whatever stands between two in C++.
Result<std::optional<Partition>> partitionOf(int32_t partition) {
  switch (partition) {
  case DEFT_PARTITION_DEFAULT:
    return std::optional<Partition>();
  case DEFT_PARTITION_QUERY:
    return std::optional(Partition::Query);
  case DEFT_PARTITION_NODE:
    return std::optional(Partition::Node);
  case DEFT_PARTITION_NODE_CHUNK:
    return std::optional(Partition::NodeChunk);
  case DEFT_PARTITION_FLATTEN:
    return std::optional(Partition::Flatten);
  case DEFT_PARTITION_CASCADE:
    return std::optional(Partition::Cascade);
  case DEFT_PARTITION_GREEDY:
    return std::optional(Partition::Greedy);
  case DEFT_PARTITION_UNION:
    return std::optional(Partition::Union);
  case DEFT_PARTITION_AUTO:
    return std::optional(Partition::Auto);
  default:
    return usage("deft_plan_options::partition is " + std::to_string(partition) + ", not between 0 and " +
                 std::to_string(DEFT_PARTITION_AUTO));
  }
}

std::optional<int> chunkOf(int32_t tokens) {
  if (tokens == DEFT_CHUNK_DEFAULT)
    return std::nullopt;
  return tokens == DEFT_CHUNK_FILL ? 0 : tokens;
}

} // namespace

Result<PlanOptions> planOptionsOf(const deft_plan_options *given) {
  const auto known = readSized("deft_plan_options", given);
  if (!known)
    return known.error();
  const auto partition = partitionOf(known->partition);
  if (!partition)
    return partition.error();
  PlanOptions options;
  options.partition = *partition;
  options.chunkTokens = chunkOf(known->chunk_tokens);
  options.workers = known->workers;
  options.invariant = known->is_invariant != 0;
  options.params = paramsOf(known->params);
  options.checkPlaces = known->checks_places != 0;
  return options;
}

Result<GpuPlanOptions> gpuPlanOptionsOf(const deft_gpu_plan_options *given) {
  const auto known = readSized("deft_gpu_plan_options", given);
  if (!known)
    return known.error();
  const auto plan = planOptionsOf(known->plan);
  if (!plan)
    return plan.error();
  GpuPlanOptions options;
  options.plan = *plan;
  options.runsAhead = known->runs_ahead;
  options.followsLengths = known->follows_lengths != 0;
  options.slack = known->slack;
  options.checksPages = known->checks_pages != 0;
  options.budget = known->budget;
  options.longestPath = known->longest_path;
  return options;
}

Result<void> giveAdvanced(const Result<Advanced> &result, deft_advanced *advanced) {
  if (!result)
    return result.error();
  if (!advanced)
    return {};
  switch (*result) {
  case Advanced::Nothing:
    *advanced = DEFT_ADVANCED_NOTHING;
    break;
  case Advanced::InPlace:
    *advanced = DEFT_ADVANCED_IN_PLACE;
    break;
  case Advanced::Remade:
    *advanced = DEFT_ADVANCED_REMADE;
    break;
  }
  return {};
}

Result<void> giveSummary(const PlanSummary &summary, deft_plan_summary *to) {
  deft_plan_summary known{};
  known.tokens_read = summary.tokensRead;
  known.items = summary.items;
  known.direct_items = summary.directItems;
  known.dealt_items = summary.dealtItems;
  known.partials = summary.partials;
  known.merged_queries = summary.mergedQueries;
  return writeSized("deft_plan_summary", known, to);
}

deft_config_choice *makeChoice(const ConfigChoice &choice) {
  Made<deft_config_choice> made;
  made->size = sizeof(deft_config_choice);
  made->rule = made.text(choice.rule);
  made->tree_class = made.text(choice.treeClass);
  made->file = made.text(choice.file);
  made->why = made.text(choice.why);
  return made.release();
}

} // namespace deft::c
