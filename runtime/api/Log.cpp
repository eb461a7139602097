#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"
#include "runtime/api/Sized.h"

#include <deft/c/log.h>

using namespace deft::api;

namespace {

struct Kind {
  deft::support::LogKind kind;
  std::int32_t code;
  const char *name;
};

constexpr Kind kKinds[] = {
    {deft::support::LogKind::Compile, DEFT_LOG_COMPILE, "compile"},
    {deft::support::LogKind::CacheHit, DEFT_LOG_CACHE_HIT, "cache hit"},
    {deft::support::LogKind::CacheMiss, DEFT_LOG_CACHE_MISS, "cache miss"},
    {deft::support::LogKind::Plan, DEFT_LOG_PLAN, "plan"},
    {deft::support::LogKind::StalePlan, DEFT_LOG_STALE_PLAN, "stale plan"},
    {deft::support::LogKind::Tune, DEFT_LOG_TUNE, "tune"},
    {deft::support::LogKind::Capture, DEFT_LOG_CAPTURE, "capture"},
};

} // namespace

const char *deft_log_kind_name(int32_t kind) {
  for (const Kind &known : kKinds)
    if (known.code == kind)
      return known.name;
  return "";
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
      for (const Kind &kind : kKinds)
        if (kind.kind == message.kind)
          given.kind = kind.code;
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
