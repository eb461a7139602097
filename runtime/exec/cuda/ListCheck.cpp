#include "runtime/exec/cuda/ListCheck.h"

#include "runtime/exec/Selection.h"
#include "runtime/exec/cuda/SmallKernel.h"

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 128; ///< as the source asserts
const char *const kEntry = "deft_check_lists";
const char *const kSource = R"(// deft_check_lists: looks at lists of tokens that a caller hands over.
#include "deft/list_check.cuh"

static_assert(deft::ListCheck::kThreads == 128, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__(deft::ListCheck::kThreads)
deft_check_lists(const __grid_constant__ deft::abi::ListCheckArgs args) {
  deft::ListCheck(args).check();
}
)";

} // namespace

const char *ListCheck::source() { return kSource; }

Result<ListCheck> ListCheck::create(const std::shared_ptr<device::Device> &device) {
  auto kernel = loadSmallKernel(device, kEntry, kSource, kThreads);
  if (!kernel)
    return kernel.error();
  auto mark = DeviceMark::create(device, "the mark of slots that are not there");
  if (!mark)
    return mark.error();
  return ListCheck(std::move(*kernel), std::move(*mark));
}

Result<void> ListCheck::launch(const int *lists, int queries, int budget, std::int64_t slots,
                               cu::Stream stream) {
  if (queries == 0)
    return {};
  slots_ = slots;
  abi::ListCheckArgs args{lists, budget, 0, slots, mark_.onDevice()};
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>(queries), params, stream);
}

std::optional<support::Error> ListCheck::takeFault() const {
  const auto wrong = mark_.takeNoted();
  if (!wrong)
    return {};
  return support::Error{support::ErrorCode::Usage,
                        "a run read a list that " + WrongSlot{wrong->which, wrong->value}.text(slots_),
                        "do not use its results"};
}

} // namespace deft::exec
