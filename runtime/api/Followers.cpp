#include "runtime/api/Followers.h"

#include "runtime/api/GpuCapture.h"
#include "runtime/api/GpuPlan.h"
#include "runtime/api/Sized.h"

#include <algorithm>
#include <tuple>

namespace deft::api {

Result<Followers> Followers::of(deft_followers *given) {
  auto known = readSized("deft_followers", given);
  if (!known)
    return known.error();
  for (const auto &[name, array, count] :
       {std::tuple<const char *, const void *, std::size_t>("deft_followers::plans", known->plans,
                                                            known->plan_count),
        {"deft_followers::gpu_plans", known->gpu_plans, known->gpu_plan_count}})
    if (auto checked = checkArray(name, array, count); !checked)
      return checked.error();
  known->advanced = DEFT_ADVANCED_NOTHING;
  return Followers(given, *known);
}

Result<void> Followers::note(bool isTaken) {
  known_.is_taken = isTaken;
  return writeSized("deft_followers", known_, given_);
}

Result<void> Followers::follow(const deft_tree &tree) {
  for (deft_plan *plan : spanOf(known_.plans, known_.plan_count)) {
    if (!plan)
      return wrong("deft_followers::plans", "has one that is null");
    const auto advanced = plan->advance(tree);
    if (!advanced)
      return advanced.error();
    known_.advanced = std::max(known_.advanced, *advanced);
  }
  for (deft_gpu_plan *plan : spanOf(known_.gpu_plans, known_.gpu_plan_count)) {
    if (!plan)
      return wrong("deft_followers::gpu_plans", "has one that is null");
    const auto advanced = plan->advance(tree);
    if (!advanced)
      return advanced.error();
    known_.advanced = std::max(known_.advanced, *advanced);
    if (known_.uploads != 0)
      if (auto uploaded = uploadPlan(*plan, known_.stream); !uploaded)
        return uploaded;
  }
  return {};
}

} // namespace deft::api
