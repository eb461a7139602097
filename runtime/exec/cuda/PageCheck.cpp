#include "runtime/exec/cuda/PageCheck.h"

#include "runtime/exec/cuda/SmallKernel.h"

#include <string>

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 128; ///< as the source asserts
const char *const kEntry = "deft_check_pages";
const char *const kSource = R"(// deft_check_pages: looks at the pages that a plan names.
#include "deft/page_check.cuh"

static_assert(deft::PageCheck::kThreads == 128, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__(deft::PageCheck::kThreads)
deft_check_pages(const __grid_constant__ deft::abi::PageCheckArgs args) {
  deft::PageCheck(args).check();
}
)";

} // namespace

const char *PageCheck::source() { return kSource; }

Result<PageCheck> PageCheck::create(const std::shared_ptr<device::Device> &device) {
  auto kernel = loadSmallKernel(device, kEntry, kSource, kThreads);
  if (!kernel)
    return kernel.error();
  auto mark = DeviceMark::create(device, "the mark of pages that are not there");
  if (!mark)
    return mark.error();
  return PageCheck(std::move(*kernel), std::move(*mark));
}

Result<void> PageCheck::launch(const abi::Item *items, int itemCount, const abi::Run *runs,
                               const int *pageTable, int pageSize, int pages, cu::Stream stream) {
  pages_ = pages;
  abi::PageCheckArgs args{items, runs, pageTable, itemCount, pageSize, pages, mark_.onDevice()};
  constexpr int kItemsOfBlock = kThreads / 32;
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>((itemCount + kItemsOfBlock - 1) / kItemsOfBlock), params,
                        stream);
}

std::optional<support::Error> PageCheck::takeFault() const {
  const auto wrong = mark_.takeNoted();
  if (!wrong)
    return {};
  return support::Error{support::ErrorCode::Usage,
                        "a run read entry " + std::to_string(wrong->which) + " of the page table, which is " +
                            std::to_string(wrong->value) + ", and the cache has " + std::to_string(pages_) +
                            " pages",
                        "do not use its results"};
}

} // namespace deft::exec
