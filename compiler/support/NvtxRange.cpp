#include "compiler/support/NvtxRange.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define DEFT_HAS_NVTX
#endif

namespace deft::support {

namespace {

#ifdef DEFT_HAS_NVTX
constexpr bool kHasNvtx = true;

/// Ranges of other libraries in the same program stand in other rows.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t own = ::nvtxDomainCreateA("deft");
  return own;
}

void push(const char *name) {
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name;
  ::nvtxDomainRangePushEx(domain(), &range);
}

void pop() { ::nvtxDomainRangePop(domain()); }
#else
constexpr bool kHasNvtx = false;
void push(const char *) {}
void pop() {}
#endif

std::atomic<bool> &flag() noexcept {
  static std::atomic<bool> isOn = [] {
    const char *asked = std::getenv("DEFT_NVTX");
    return kHasNvtx && asked && std::string_view(asked) == "1";
  }();
  return isOn;
}

} // namespace

bool hasNvtx() noexcept { return kHasNvtx; }
void setNvtx(bool isOn) noexcept { flag() = isOn && kHasNvtx; }
bool isNvtxOn() noexcept { return flag().load(std::memory_order_relaxed); }

NvtxRange::NvtxRange(const char *name) noexcept : isOpen_(isNvtxOn()) {
  if (isOpen_)
    push(name);
}

NvtxRange::~NvtxRange() {
  if (isOpen_)
    pop();
}

} // namespace deft::support
