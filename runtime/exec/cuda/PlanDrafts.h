#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "runtime/exec/cuda/PlanRoom.h"

#include <memory>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

/// In device memory: which drafts see which (abi::DraftArgs).
struct DraftInput {
  const unsigned *bits = nullptr;
  const int *depths = nullptr, *lengths = nullptr; ///< may be null
  int rows = 0;
};

/// Writes the sections that PlanRoom::draftRequests reserves.
void writeDrafts(const plan::Plan &plan, const plan::DraftTables &tables, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to);

/// The kernel that fits a plan on the device to the trees of its drafts, and the faults that it found.
class PlanDrafts {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels.
  static support::Result<PlanDrafts> create(const std::shared_ptr<device::Device> &device);

  /// The source text of the kernel.
  static const char *source();

  /// `plan` is the plan's device memory.
  support::Result<void> launch(const DraftInput &input, const PlanRoom &room, const PlanSections &sections,
                               std::byte *plan, cu::Stream stream) const;

  /// Rows that do not form a tree, or a length outside the plan's limits; clears the fault.
  std::optional<support::Error> takeFault() const;

private:
  PlanDrafts(device::Kernel kernel, DeviceMark noTree, DeviceMark unserved)
      : kernel_(std::move(kernel)), noTree_(std::move(noTree)), unserved_(std::move(unserved)) {}

  device::Kernel kernel_;
  DeviceMark noTree_, unserved_;
};

} // namespace deft::exec
