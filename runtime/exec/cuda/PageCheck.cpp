#include "runtime/exec/cuda/PageCheck.h"

#include "runtime/exec/cuda/SmallKernel.h"

#include <atomic>
#include <cstdint>

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

Result<PageCheck> PageCheck::create(const std::shared_ptr<device::Device> &device, int pageSize) {
  auto kernel = loadSmallKernel(device, kEntry, kSource, kThreads);
  if (!kernel)
    return kernel.error();
  auto mark = std::make_shared<device::HostMemory>(device);
  if (auto reserved = mark->reserve(sizeof(std::uint64_t), "the mark of pages that are not there"); !reserved)
    return reserved.error();
  return PageCheck(std::move(*kernel), std::move(mark), pageSize);
}

Result<void> PageCheck::launch(const abi::Item *items, int itemCount, const abi::Run *runs,
                               const int *pageTable, int pages, cu::Stream stream) {
  pages_ = pages;
  abi::PageCheckArgs args{
      items, runs, pageTable, itemCount, pageSize_, pages, mark_->onDevice<unsigned long long>()};
  constexpr int kItemsOfBlock = kThreads / 32;
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>((itemCount + kItemsOfBlock - 1) / kItemsOfBlock), params,
                        stream);
}

std::optional<PageCheck::Wrong> PageCheck::takeWrong() {
  const std::uint64_t seen = mark_->as<std::atomic<std::uint64_t>>()->exchange(0, std::memory_order_acq_rel);
  if (seen == 0)
    return {};
  return Wrong{static_cast<int>(seen & 0xffffffff) - 1, static_cast<int>(seen >> 32), pages_};
}

} // namespace deft::exec
