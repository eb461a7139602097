#pragma once

#include <deft/c/plan.h>
#include <deft/plan.hpp>

/// What plans of processors and of GPUs have in common.
namespace deft::c {

/// Its params are the caller's: for the call. Null: all default.
Result<PlanOptions> planOptionsOf(const deft_plan_options *given);

/// `advanced` may be null.
Result<void> giveAdvanced(const Result<Advanced> &result, deft_advanced *advanced);

Result<void> giveSummary(const PlanSummary &summary, deft_plan_summary *to);

/// For the caller, who gives it back.
deft_config_choice *makeChoice(const ConfigChoice &choice);

} // namespace deft::c
