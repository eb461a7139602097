#include "runtime/c_api/Sized.h"

#include <deft/c/log.h>
#include <deft/log.hpp>

#include <cstdint>

using namespace deft::c;

static_assert(static_cast<int>(deft::LogKind::Compile) == DEFT_LOG_COMPILE &&
              static_cast<int>(deft::LogKind::CacheHit) == DEFT_LOG_CACHE_HIT &&
              static_cast<int>(deft::LogKind::CacheMiss) == DEFT_LOG_CACHE_MISS &&
              static_cast<int>(deft::LogKind::Plan) == DEFT_LOG_PLAN &&
              static_cast<int>(deft::LogKind::StalePlan) == DEFT_LOG_STALE_PLAN &&
              static_cast<int>(deft::LogKind::Tune) == DEFT_LOG_TUNE);

deft_status deft_set_log(const deft_log_listener *listener) {
  return call(__func__, {}, [&]() -> deft::Result<void> {
    const auto known = readSized("deft_log_listener", listener);
    if (!known)
      return known.error();
    if (!known->message)
      deft::setLog(nullptr);
    else
      deft::setLog([to = *known](const deft::LogMessage &message) {
        deft_log_message told{};
        told.size = sizeof told;
        told.kind_name = deft::logKindName(message.kind);
        told.text = message.text.c_str();
        told.duration_us = message.durationUs;
        told.kind = static_cast<std::int32_t>(message.kind);
        to.message(to.context, &told);
      });
    return {};
  });
}

int32_t deft_set_nvtx(int32_t is_on) { return deft::setNvtx(is_on != 0); }
