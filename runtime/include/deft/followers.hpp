#pragma once

#include <deft/c/followers.h>
#include <deft/gpu.hpp>

#include <optional>
#include <span>
#include <vector>

/// One call for a step of a PagedBatch or a BeamTree and for all its plans.
namespace deft {

/// Plans that follow a step: the call that makes the step also advances each plan and, if a stream is given,
/// uploads each plan of a GPU.
struct Followers {
  std::span<Plan *const> plans = {};
  std::span<GpuPlan *const> gpuPlans = {};
  std::optional<GpuStream> stream = {}; ///< of the uploads
};

namespace detail {

/// Handles of plans, for one call.
class FollowersOfC {
public:
  explicit FollowersOfC(const Followers &of) {
    for (Plan *plan : of.plans)
      plans_.push_back(plan->handle());
    for (GpuPlan *plan : of.gpuPlans)
      gpuPlans_.push_back(plan->handle());
    own_.size = sizeof own_;
    own_.plans = plans_.data();
    own_.plan_count = plans_.size();
    own_.gpu_plans = gpuPlans_.data();
    own_.gpu_plan_count = gpuPlans_.size();
    own_.stream = of.stream.value_or(nullptr);
    own_.uploads = of.stream.has_value();
  }

  deft_followers *get() { return &own_; }
  Result<Advanced> after(deft_status status) const { return advancedOf(status, own_.advanced); }

private:
  std::vector<deft_plan *> plans_;
  std::vector<deft_gpu_plan *> gpuPlans_;
  deft_followers own_ = {};
};

} // namespace detail

} // namespace deft
