#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/Sized.h"

#include <deft/c/log.h>

#include <iterator>

using namespace deft::api;

namespace {

using deft::support::LogKind;

// By number, which a program has compiled in.
static_assert(static_cast<int>(LogKind::Compile) == DEFT_LOG_COMPILE);
static_assert(static_cast<int>(LogKind::CacheHit) == DEFT_LOG_CACHE_HIT);
static_assert(static_cast<int>(LogKind::CacheMiss) == DEFT_LOG_CACHE_MISS);
static_assert(static_cast<int>(LogKind::Plan) == DEFT_LOG_PLAN);
static_assert(static_cast<int>(LogKind::StalePlan) == DEFT_LOG_STALE_PLAN);
static_assert(static_cast<int>(LogKind::Tune) == DEFT_LOG_TUNE);
static_assert(static_cast<int>(LogKind::Capture) == DEFT_LOG_CAPTURE);
constexpr const char *kNames[] = {"compile",    "cache hit", "cache miss", "plan",
                                  "stale plan", "tune",      "capture"};

} // namespace

const char *deft_log_kind_name(int32_t kind) {
  return kind >= 0 && static_cast<std::size_t>(kind) < std::size(kNames) ? kNames[kind] : "";
}

deft_status deft_set_log(const deft_log_listener *listener) {
  return call({}, [&]() -> Result<void> {
    const auto known = readSized("deft_log_listener", listener);
    if (!known)
      return known.error();
    if (!known->message) {
      deft::support::setLog(nullptr);
      return {};
    }
    deft::support::setLog([to = *known](const deft::support::LogMessage &message) {
      deft_log_message given{};
      given.size = sizeof given;
      given.kind = static_cast<std::int32_t>(message.kind);
      given.kind_name = deft_log_kind_name(given.kind);
      given.text = message.text.c_str();
      given.duration_us = message.durationUs;
      to.message(to.context, &given);
    });
    return {};
  });
}

int32_t deft_set_nvtx(int32_t is_on) {
  deft::support::setNvtx(is_on != 0);
  return deft::support::hasNvtx();
}
