#include "runtime/c_api/Handles.h"
#include "runtime/c_api/PlanParts.h"
#include "runtime/c_api/RunTensors.h"
#include "runtime/c_api/Sized.h"
#include "runtime/c_api/Texts.h"

using namespace deft::c;

namespace {

deft::Result<void> giveRoom(const deft::GpuRoom &own, deft_gpu_room *to) {
  deft_gpu_room known{};
  known.queries = own.queries;
  known.items = own.items;
  known.runs = own.runs;
  known.partials = own.partials;
  known.positions = own.positions;
  known.stretches = own.stretches;
  return writeSized("deft_gpu_room", known, to);
}

} // namespace

deft_status deft_gpu_room_for(const deft_gpu_attention *attention, int32_t requests, int32_t queries,
                              int64_t tokens, const deft_gpu_plan_options *options, deft_gpu_room *room,
                              deft_gpu_room_size *room_size) {
  return call(__func__, {{"attention", attention}, {"room", room}}, [&]() -> deft::Result<void> {
    const auto known = gpuPlanOptionsOf(options);
    if (!known)
      return known.error();
    const auto needed = deft::roomFor(attention->loaded, requests, queries, tokens, *known);
    if (!needed)
      return needed.error();
    if (room_size) {
      deft_gpu_room_size size{};
      size.device_bytes = needed->deviceBytes;
      size.host_bytes = needed->hostBytes;
      if (auto written = writeSized("deft_gpu_room_size", size, room_size); !written)
        return written;
    }
    return giveRoom(needed->room, room);
  });
}

deft_status deft_gpu_plan_make(const deft_gpu_attention *attention, const deft_tree *tree,
                               const deft_gpu_plan_options *options, deft_gpu_plan **plan) {
  return makeGpuPlan(__func__, {"tree", tree}, attention, options, plan, [&](const auto &known) {
    return deft::GpuPlan::make(attention->loaded, *tree->seen, known);
  });
}

void deft_gpu_plan_destroy(deft_gpu_plan *plan) { delete plan; }

deft_status deft_gpu_plan_advance(deft_gpu_plan *plan, const deft_tree *tree, deft_advanced *advanced) {
  return call(__func__, {{"plan", plan}, {"tree", tree}},
              [&] { return giveAdvanced(plan->plan.advance(*tree->seen), advanced); });
}

deft_status deft_gpu_plan_upload(deft_gpu_plan *plan, deft_gpu_stream stream) {
  return call(__func__, {{"plan", plan}}, [&] { return plan->plan.upload(stream); });
}

deft_status deft_gpu_plan_follow(deft_gpu_plan *plan, const deft_tensor *lengths, deft_gpu_stream stream) {
  return call(__func__, {{"plan", plan}, {"lengths", lengths}}, [&]() -> deft::Result<void> {
    const auto known = checkLengths(lengths, plan->plan.queryCount(), {.isGpu = true, .gpu = plan->gpu});
    return known ? plan->plan.follow(*known, stream) : known.error();
  });
}

deft_status deft_gpu_plan_draft(deft_gpu_plan *plan, const deft_draft_mask *mask, deft_gpu_stream stream) {
  return call(__func__, {{"plan", plan}, {"mask", mask}}, [&]() -> deft::Result<void> {
    const auto known = checkMask(mask, {.isGpu = true, .gpu = plan->gpu});
    return known ? plan->plan.draft(*known, stream) : known.error();
  });
}

namespace {

using Run = deft::Result<void> (deft::GpuPlan::*)(const deft::GpuAttention &, const deft::GpuInputs &,
                                                  const deft::GpuOutputs &, deft::GpuStream);

deft_status runAs(Run run, const char *function, deft_gpu_plan *plan, const deft_gpu_attention *attention,
                  const deft_inputs *inputs, const deft_outputs *outputs, deft_gpu_stream stream) {
  return call(function, {{"plan", plan}, {"attention", attention}, {"inputs", inputs}, {"outputs", outputs}},
              [&]() -> deft::Result<void> {
                const deft::GpuAttention &loaded = attention->loaded;
                const auto tensors =
                    checkTensors(loaded.attention(), plan->plan.queryCount(),
                                 {.isGpu = true, .gpu = loaded.gpu().facts().index}, inputs, outputs);
                if (!tensors)
                  return tensors.error();
                std::optional<std::int64_t> tableEntries;
                if (tensors->pageTable.data())
                  tableEntries = static_cast<std::int64_t>(tensors->pageTable.size());
                if (tensors->params)
                  return usage("deft_inputs::params is given, on a GPU the attention has its parameters",
                               "load it with them, or call deft_gpu_attention_with_params");
                return (plan->plan.*run)(
                    loaded,
                    {.q = tensors->q,
                     .k = tensors->k,
                     .v = tensors->v,
                     .pageTable = tensors->pageTable.data(),
                     .strides = tensors->strides,
                     .cachePages = tensors->cachePages,
                     .vStrides = tensors->vStrides,
                     .qStride = tensors->qStride,
                     .tableEntries = tableEntries,
                     .checksFinite = tensors->checksFinite},
                    {.out = tensors->out, .lse = tensors->lse, .outStride = tensors->outStride}, stream);
              });
}

} // namespace

deft_status deft_gpu_plan_run(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                              const deft_inputs *inputs, const deft_outputs *outputs,
                              deft_gpu_stream stream) {
  return runAs(&deft::GpuPlan::run, __func__, plan, attention, inputs, outputs, stream);
}

deft_status deft_gpu_plan_run_selecting(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                        const deft_inputs *inputs, const deft_outputs *outputs,
                                        deft_gpu_stream stream) {
  return runAs(&deft::GpuPlan::runSelecting, __func__, plan, attention, inputs, outputs, stream);
}

deft_status deft_gpu_plan_run_sparse(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                     const deft_inputs *inputs, const deft_outputs *outputs,
                                     deft_gpu_stream stream) {
  return runAs(&deft::GpuPlan::runSparse, __func__, plan, attention, inputs, outputs, stream);
}

deft_status deft_gpu_plan_check_replays(deft_gpu_plan *plan) {
  return call(__func__, {{"plan", plan}}, [&] { return plan->plan.checkReplays(); });
}

deft_status deft_gpu_plan_reserve(deft_gpu_plan *plan, const deft_gpu_room *room) {
  return call(__func__, {{"plan", plan}, {"room", room}}, [&]() -> deft::Result<void> {
    const auto known = readSized("deft_gpu_room", room);
    if (!known)
      return known.error();
    return plan->plan.reserve({.queries = known->queries,
                               .items = known->items,
                               .runs = known->runs,
                               .partials = known->partials,
                               .positions = known->positions,
                               .stretches = known->stretches});
  });
}

deft_status deft_gpu_plan_get_room(const deft_gpu_plan *plan, deft_gpu_room *room) {
  return call(__func__, {{"plan", plan}, {"room", room}}, [&] { return giveRoom(plan->plan.room(), room); });
}

int32_t deft_gpu_plan_is_current(const deft_gpu_plan *plan) {
  return ask(__func__, {"plan", plan}, 0, [&] { return plan->plan.isCurrent(); });
}

int32_t deft_gpu_plan_query_count(const deft_gpu_plan *plan) {
  return ask(__func__, {"plan", plan}, 0, [&] { return plan->plan.queryCount(); });
}

deft_status deft_gpu_plan_get_summary(const deft_gpu_plan *plan, deft_plan_summary *summary) {
  return call(__func__, {{"plan", plan}, {"summary", summary}},
              [&] { return giveSummary(plan->plan.summary(), summary); });
}

deft_status deft_gpu_plan_get_choice(const deft_gpu_plan *plan, deft_config_choice **choice) {
  clearPlace(choice);
  return call(__func__, {{"plan", plan}, {"choice", choice}}, [&]() -> deft::Result<void> {
    *choice = makeChoice(plan->plan.choice());
    return {};
  });
}

deft_status deft_gpu_plan_get_picture(const deft_gpu_plan *plan, const deft_tree *tree, char **svg) {
  return giveText(__func__, {{"plan", plan}, {"tree", tree}, {"svg", svg}}, svg,
                  [&] { return plan->plan.picture(*tree->seen); });
}
