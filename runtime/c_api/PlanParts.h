#pragma once

#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Handles.h"

#include <deft/gpu.hpp>
#include <deft/plan.hpp>

/// What plans of processors and of GPUs have in common.
namespace deft::c {

/// Its params are the caller's: for the call. Null: all default.
Result<PlanOptions> planOptionsOf(const deft_plan_options *given);

/// Those of plans on GPUs, with the plan's own. Null: all default.
Result<GpuPlanOptions> gpuPlanOptionsOf(const deft_gpu_plan_options *given);

/// A function that makes a plan on a GPU for what `of` is. `body` gives it, a Result, for options.
template <typename Body>
deft_status makeGpuPlan(const char *function, Pointer of, const deft_gpu_attention *attention,
                        const deft_gpu_plan_options *options, deft_gpu_plan **plan, Body &&body) noexcept {
  return make(function, {{"attention", attention}, of}, plan, [&]() -> Result<deft_gpu_plan> {
    const auto known = gpuPlanOptionsOf(options);
    if (!known)
      return known.error();
    Result<GpuPlan> made = body(*known);
    if (!made)
      return made.error();
    return deft_gpu_plan{std::move(*made), attention->loaded.gpu().facts().index};
  });
}

/// `advanced` may be null.
Result<void> giveAdvanced(const Result<Advanced> &result, deft_advanced *advanced);

Result<void> giveSummary(const PlanSummary &summary, deft_plan_summary *to);

/// For the caller, who gives it back.
deft_config_choice *makeChoice(const ConfigChoice &choice);

} // namespace deft::c
