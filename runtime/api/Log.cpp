#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"

#include <deft/log.hpp>

namespace deft {

namespace {

static_assert(static_cast<int>(LogKind::Compile) == static_cast<int>(support::LogKind::Compile) &&
              static_cast<int>(LogKind::CacheHit) == static_cast<int>(support::LogKind::CacheHit) &&
              static_cast<int>(LogKind::CacheMiss) == static_cast<int>(support::LogKind::CacheMiss) &&
              static_cast<int>(LogKind::Plan) == static_cast<int>(support::LogKind::Plan) &&
              static_cast<int>(LogKind::StalePlan) == static_cast<int>(support::LogKind::StalePlan) &&
              static_cast<int>(LogKind::Tune) == static_cast<int>(support::LogKind::Tune));

} // namespace

const char *logKindName(LogKind kind) {
  switch (kind) {
  case LogKind::Compile:
    return "compile";
  case LogKind::CacheHit:
    return "cache hit";
  case LogKind::CacheMiss:
    return "cache miss";
  case LogKind::Plan:
    return "plan";
  case LogKind::StalePlan:
    return "stale plan";
  case LogKind::Tune:
    return "tune";
  }
  return "";
}

void setLog(std::function<void(const LogMessage &)> function) {
  if (!function)
    return support::setLog(nullptr);
  support::setLog([function = std::move(function)](const support::LogMessage &message) {
    function({static_cast<LogKind>(message.kind), message.text, message.durationUs});
  });
}

bool setNvtx(bool isOn) {
  support::setNvtx(isOn);
  return support::hasNvtx();
}

} // namespace deft
