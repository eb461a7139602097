#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "runtime/exec/cuda/PlanRoom.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace deft::exec {

namespace cu = device::cu;

/// How far a plan on the device may follow requests whose lengths grow there.
struct GrowthRules {
  /// The tokens that a request may gain before the host must plan again, as far as plans grow in place
  /// (plan::Planner::kMostGrowth). 0: to the end of its page, but at least kLeastSlack and at most that
  /// limit.
  int slack = 0;
  int pageSize = 0; ///< of the cache; 0: contiguous
  static constexpr int kLeastSlack = 16;

  /// The slack of a leaf that ends before this place of the cache.
  int slackAt(int end) const;
};

/// The tables that the kernel reads in addition to a plan. Each query of the plan's order has a leaf of its
/// own there. If the query ends inside a node, or other queries end with the same node, this leaf cannot
/// grow, and any other length is a fault.
struct GrowthTables {
  std::vector<abi::GrowingLeaf> leaves;
  std::vector<abi::Grown> runs, queries;
  std::vector<int> items; ///< the plan's items with a growing run
};
GrowthTables growthTables(const plan::Plan &plan, const GrowthRules &rules);

/// Writes the sections that PlanRoom::growsOnDevice reserves.
void writeGrowth(const plan::Plan &plan, const GrowthTables &tables, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to);

/// The kernel that lets a plan on the device follow lengths in device memory, and the fault that it found.
class PlanGrowth {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels.
  static support::Result<PlanGrowth> create(const std::shared_ptr<device::Device> &device, GrowthRules rules);

  /// The source text of the kernel.
  static const char *source();

  const GrowthRules &rules() const { return rules_; }

  /// `plan` is the plan's device memory.
  support::Result<void> launch(const int *lengths, const PlanRoom &room, const PlanSections &sections,
                               std::byte *plan, cu::Stream stream) const;

  /// A request whose length on the device was outside the plan's limits; clears the fault.
  std::optional<support::Error> takeFault() const;

private:
  PlanGrowth(device::Kernel kernel, DeviceMark mark, GrowthRules rules)
      : kernel_(std::move(kernel)), mark_(std::move(mark)), rules_(rules) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  GrowthRules rules_;
};

} // namespace deft::exec
