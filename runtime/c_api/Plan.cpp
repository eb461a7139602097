#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Handles.h"
#include "runtime/c_api/PlanParts.h"
#include "runtime/c_api/RunTensors.h"
#include "runtime/c_api/Texts.h"

using namespace deft::c;

deft_status deft_plan_make(const deft_attention *attention, const deft_tree *tree,
                           const deft_plan_options *options, deft_plan **plan) {
  return make(__func__, {{"attention", attention}, {"tree", tree}}, plan, [&]() -> deft::Result<deft::Plan> {
    const auto known = planOptionsOf(options);
    return known ? deft::Plan::make(attention->attention, *tree->seen, *known) : known.error();
  });
}

void deft_plan_destroy(deft_plan *plan) { delete plan; }

deft_status deft_plan_advance(deft_plan *plan, const deft_tree *tree, deft_advanced *advanced) {
  return call(__func__, {{"plan", plan}, {"tree", tree}},
              [&] { return giveAdvanced(plan->plan.advance(*tree->seen), advanced); });
}

deft_status deft_plan_draft(deft_plan *plan, const deft_draft_mask *mask) {
  return call(__func__, {{"plan", plan}, {"mask", mask}}, [&]() -> deft::Result<void> {
    const auto known = checkMask(mask, {});
    return known ? plan->plan.draft(*known) : known.error();
  });
}

int32_t deft_plan_is_current(const deft_plan *plan) {
  return ask(__func__, {"plan", plan}, 0, [&] { return plan->plan.isCurrent(); });
}

int32_t deft_plan_query_count(const deft_plan *plan) {
  return ask(__func__, {"plan", plan}, 0, [&] { return plan->plan.queryCount(); });
}

deft_status deft_plan_get_summary(const deft_plan *plan, deft_plan_summary *summary) {
  return call(__func__, {{"plan", plan}, {"summary", summary}},
              [&] { return giveSummary(plan->plan.summary(), summary); });
}

deft_status deft_plan_get_choice(const deft_plan *plan, deft_config_choice **choice) {
  clearPlace(choice);
  return call(__func__, {{"plan", plan}, {"choice", choice}}, [&]() -> deft::Result<void> {
    *choice = makeChoice(plan->plan.choice());
    return {};
  });
}

deft_status deft_plan_get_picture(const deft_plan *plan, const deft_tree *tree, char **svg) {
  return giveText(__func__, {{"plan", plan}, {"tree", tree}, {"svg", svg}}, svg,
                  [&] { return plan->plan.picture(*tree->seen); });
}
