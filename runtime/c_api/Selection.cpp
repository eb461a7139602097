#include "runtime/c_api/HostRun.h"
#include "runtime/c_api/Made.h"
#include "runtime/c_api/Sized.h"

using namespace deft::c;

struct deft_selection {
  deft::Selection selection;
};

deft_status deft_attention_get_selection(const deft_attention *attention, deft_selection_info *info) {
  return call(__func__, {{"attention", attention}, {"info", info}}, [&] {
    deft_selection_info known{};
    if (const std::optional<deft::SelectionInfo> &selects = attention->attention.selects()) {
      known.budgets = selects->budgets.data();
      known.budget_count = selects->budgets.size();
      known.by = static_cast<std::int32_t>(selects->by);
      known.keep_first = selects->keepFirst;
      known.keep_last = selects->keepLast;
    }
    return writeSized("deft_selection_info", known, info);
  });
}

deft_status deft_selection_make(const deft_attention *attention, int32_t budget, deft_selection **selection) {
  return make(__func__, {{"attention", attention}}, selection, [&]() -> deft::Result<deft::Selection> {
    return deft::Selection::make(attention->attention,
                                 budget == 0 ? std::nullopt : std::optional<int>(budget));
  });
}

void deft_selection_destroy(deft_selection *selection) { delete selection; }

deft_status deft_selection_get(const deft_selection *selection, deft_selection_view *view) {
  return call(__func__, {{"selection", selection}, {"view", view}}, [&] {
    const deft::Selection &own = selection->selection;
    return writeSized("deft_selection_view",
                      deft_selection_view{.size = 0,
                                          .positions = own.allPositions().data(),
                                          .counts = own.counts().data(),
                                          .queries = own.queryCount(),
                                          .lists = own.lists(),
                                          .budget = own.budget(),
                                          .reserved = 0},
                      view);
  });
}

namespace {

/// A run that makes lists or reads them, `run(inputs, outputs)`.
template <class Run>
deft_status runWithLists(const char *function, const deft_runtime *runtime, const deft_attention *attention,
                         const deft_plan *plan, const deft_selection *selection, const deft_inputs *inputs,
                         const deft_outputs *outputs, const Run &run) {
  return call(function,
              {{"runtime", runtime},
               {"attention", attention},
               {"plan", plan},
               {"selection", selection},
               {"inputs", inputs},
               {"outputs", outputs}},
              [&] { return runOnHost(attention, plan, inputs, outputs, run); });
}

} // namespace

deft_status deft_runtime_run_selecting(const deft_runtime *runtime, const deft_attention *attention,
                                       const deft_plan *plan, deft_selection *selection,
                                       const deft_inputs *inputs, const deft_outputs *outputs) {
  const auto run = [&](const auto &in, const auto &out) {
    return runtime->runtime.runSelecting(attention->attention, plan->plan, selection->selection, in, out);
  };
  return runWithLists(__func__, runtime, attention, plan, selection, inputs, outputs, run);
}

deft_status deft_runtime_run_sparse(const deft_runtime *runtime, const deft_attention *attention,
                                    const deft_plan *plan, const deft_selection *selection,
                                    const deft_inputs *inputs, const deft_outputs *outputs) {
  const auto run = [&](const auto &in, const auto &out) {
    return runtime->runtime.runSparse(attention->attention, plan->plan, selection->selection, in, out);
  };
  return runWithLists(__func__, runtime, attention, plan, selection, inputs, outputs, run);
}

deft_status deft_gpu_plan_read_lists(const deft_gpu_plan *plan, deft_selection *selection,
                                     deft_gpu_stream stream) {
  return call(__func__, {{"plan", plan}, {"selection", selection}},
              [&] { return plan->plan.readLists(selection->selection, stream); });
}
