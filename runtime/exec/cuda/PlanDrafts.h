#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "runtime/exec/cuda/PlanRoom.h"

#include <memory>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

/// Which drafts see which, on the device: as abi::DraftArgs has it.
struct DraftInput {
  const unsigned *bits = nullptr;
  const int *depths = nullptr, *lengths = nullptr; ///< may be null
  int rows = 0;
};

/// Writes the sections that PlanRoom::draftRequests adds.
void writeDrafts(const plan::Plan &plan, const plan::DraftTables &tables, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to);

/// The kernel that makes a plan on the device that of the trees that drafts have there, and what it noticed.
class PlanDrafts {
public:
  /// The kernel comes from NVRTC or the cache of kernels.
  static support::Result<PlanDrafts> create(const std::shared_ptr<device::Device> &device);

  /// What the kernel is compiled of.
  static const char *source();

  /// `plan` is the plan's memory on the device.
  support::Result<void> launch(const DraftInput &input, const PlanRoom &room, const PlanSections &sections,
                               std::byte *plan, cu::Stream stream) const;

  /// Rows that are no tree's, or a length that the plan does not serve. Forgets it.
  std::optional<support::Error> takeFault() const;

private:
  PlanDrafts(device::Kernel kernel, DeviceMark noTree, DeviceMark unserved)
      : kernel_(std::move(kernel)), noTree_(std::move(noTree)), unserved_(std::move(unserved)) {}

  device::Kernel kernel_;
  DeviceMark noTree_, unserved_;
};

} // namespace deft::exec
