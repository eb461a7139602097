#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "runtime/exec/cuda/PlanRoom.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace deft::exec {

namespace cu = device::cu;

/// How far a plan on the device goes along with requests that grow there.
struct GrowthRules {
  /// Tokens that a request may gain before the host plans anew, as far as plans grow in place
  /// (plan::Planner::kMostGrowth). 0: to the end of its page, but kLeastSlack at least, and no more than
  /// that.
  int slack = 0;
  int pageSize = 0; ///< of the cache; 0: contiguous
  static constexpr int kLeastSlack = 16;

  /// What these leave to a leaf that ends before this place of the cache.
  int slackAt(int end) const;
};

/// What the kernel reads beside a plan. Each query of the plan's order is a leaf of its own there: one that
/// ends inside a node, or with a node that others end with, too, gains nothing, and another length of it is
/// noticed.
struct GrowthTables {
  std::vector<abi::GrowingLeaf> leaves;
  std::vector<abi::Grown> runs, queries;
  std::vector<int> items; ///< of the plan, those with a run that grows
};
GrowthTables growthTables(const plan::Plan &plan, const GrowthRules &rules);

/// Writes the sections that PlanRoom::growsOnDevice adds.
void writeGrowth(const plan::Plan &plan, const GrowthTables &tables, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to);

/// The kernel that lets a plan on the device follow lengths that are there, and what it noticed.
class PlanGrowth {
public:
  /// The kernel comes from NVRTC or the cache of kernels.
  static support::Result<PlanGrowth> create(const std::shared_ptr<device::Device> &device, GrowthRules rules);

  /// What the kernel is compiled of.
  static const char *source();

  const GrowthRules &rules() const { return rules_; }

  /// `plan` is the plan's memory on the device.
  support::Result<void> launch(const int *lengths, const PlanRoom &room, const PlanSections &sections,
                               std::byte *plan, cu::Stream stream) const;

  /// A request that was longer or shorter on the device than its plan serves. Forgets it.
  std::optional<support::Error> takeFault() const;

private:
  PlanGrowth(device::Kernel kernel, DeviceMark mark, GrowthRules rules)
      : kernel_(std::move(kernel)), mark_(std::move(mark)), rules_(rules) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  GrowthRules rules_;
};

} // namespace deft::exec
