#include "runtime/exec/cuda/PlanDrafts.h"

#include "runtime/exec/cuda/SmallKernel.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 256; ///< as the source asserts
const char *const kEntry = "deft_draft_plan";
const char *const kSource =
    R"(// deft_draft_plan: makes a plan on the device that of the trees that drafts have there.
#include "deft/plan_drafts.cuh"

static_assert(deft::PlanDrafts::kThreads == 256, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__(deft::PlanDrafts::kThreads, 4)
deft_draft_plan(const __grid_constant__ deft::abi::DraftArgs args) {
  deft::PlanDrafts(args).run();
}
)";

} // namespace

void writeDrafts(const plan::Plan &plan, const plan::DraftTables &tables, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to) {
  const auto copy = [&](std::size_t section, const auto &values) {
    if (!values.empty())
      std::memcpy(to + section, values.data(), values.size() * sizeof(values[0]));
  };
  std::memset(to + sections.draftRequests, 0, // of no drafts: the list ends here
              static_cast<std::size_t>(room.draftRequests) * sizeof(abi::DraftRequest));
  copy(sections.draftRequests, tables.requests);
  copy(sections.draftParts, tables.parts);
  copy(sections.held, tables.held);
  copy(sections.queryAt, tables.queryAt);
  auto *const items = reinterpret_cast<abi::DraftItem *>(to + sections.draftItems);
  std::fill_n(items, room.draftItems, abi::DraftItem{-1, 0, 0, 0, 0, 0, 0, 0});
  copy(sections.draftItems, tables.items);
  for (std::size_t i = 0; i < tables.items.size(); ++i)
    items[i].item = itemOnDevice(plan, sections, items[i].item);
}

const char *PlanDrafts::source() { return kSource; }

Result<PlanDrafts> PlanDrafts::create(const std::shared_ptr<device::Device> &device) {
  auto kernel = loadSmallKernel(device, kEntry, kSource, kThreads);
  if (!kernel)
    return kernel.error();
  auto noTree = DeviceMark::create(device, "the mark of drafts that are no tree");
  if (!noTree)
    return noTree.error();
  auto unserved = DeviceMark::create(device, "the mark of drafts' lengths");
  if (!unserved)
    return unserved.error();
  return PlanDrafts(std::move(*kernel), std::move(*noTree), std::move(*unserved));
}

Result<void> PlanDrafts::launch(const DraftInput &input, const PlanRoom &room, const PlanSections &sections,
                                std::byte *plan, cu::Stream stream) const {
  abi::DraftArgs args{};
  args.bits = input.bits;
  args.depths = input.depths;
  args.lengths = input.lengths;
  args.requests = reinterpret_cast<const abi::DraftRequest *>(plan + sections.draftRequests);
  args.draftItems = reinterpret_cast<const abi::DraftItem *>(plan + sections.draftItems);
  args.parts = reinterpret_cast<const abi::DraftPart *>(plan + sections.draftParts);
  args.held = reinterpret_cast<const unsigned *>(plan + sections.held);
  args.queryAt = reinterpret_cast<const int *>(plan + sections.queryAt);
  args.items = reinterpret_cast<abi::Item *>(plan + sections.items);
  args.runs = reinterpret_cast<abi::Run *>(plan + sections.runs);
  args.callerIndex = reinterpret_cast<int *>(plan + sections.callerIndex);
  args.queryPos = reinterpret_cast<int *>(plan + sections.queryPos);
  args.noTree = noTree_.onDevice();
  args.unserved = unserved_.onDevice();
  args.rows = input.rows;
  args.mostRequests = room.draftRequests;
  args.mostItems = room.draftItems;
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>(room.draftItems + room.draftRequests), params, stream);
}

std::optional<support::Error> PlanDrafts::takeFault() const {
  if (const unsigned long long mark = noTree_.take())
    return plan::noTreeError(mark);
  if (const unsigned long long mark = unserved_.take())
    return plan::unservedError(mark);
  return {};
}

} // namespace deft::exec
