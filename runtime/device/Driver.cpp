#include "runtime/device/Driver.h"

#include <cstdlib>

#include <dlfcn.h>

namespace deft::device {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error missing(std::string message, std::string hint) {
  return Error{ErrorCode::Environment, std::move(message), std::move(hint)};
}

} // namespace

Result<std::shared_ptr<const Driver>> Driver::load(const std::string &library) {
  void *handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return missing("no CUDA driver: `" + library + "` cannot be loaded", kWithoutGpu);
  std::shared_ptr<Driver> driver(new Driver());
  const char *absent = nullptr;
#define DEFT_LOAD(member, symbol, parameters)                                                                \
  driver->api_.member = reinterpret_cast<decltype(driver->api_.member)>(::dlsym(handle, symbol));            \
  if (!driver->api_.member)                                                                                  \
    absent = symbol;
  DEFT_DRIVER_FUNCTIONS(DEFT_LOAD)
#undef DEFT_LOAD
  if (absent)
    return missing("the CUDA driver is too old: it lacks `" + std::string(absent) + "`",
                   "a driver of CUDA 12 or newer is needed");
  const cu::Api &api = driver->api_;
  if (const cu::Result result = api.init(0); result != cu::kSuccess) {
    Error error = driver->error("cannot start the CUDA driver", result);
    const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
    error.hint = visible ? "CUDA_VISIBLE_DEVICES is `" + std::string(visible) +
                               "`, which may hide the GPUs; " + kWithoutGpu
                         : kWithoutGpu;
    return error;
  }
  (void)api.driverGetVersion(&driver->version_);
  (void)api.deviceGetCount(&driver->deviceCount_);
  if (driver->deviceCount_ == 0)
    return missing("the CUDA driver finds no GPU", kWithoutGpu);
  return std::shared_ptr<const Driver>(driver);
}

Error Driver::error(const std::string &whatFailed, cu::Result result) const {
  const char *name = nullptr;
  const char *text = nullptr;
  (void)api_.getErrorName(result, &name);
  (void)api_.getErrorString(result, &text);
  return Error{ErrorCode::Environment,
               whatFailed + ": " + (text ? text : "unknown error") + " (" +
                   (name ? std::string(name) : std::to_string(result)) + ")",
               ""};
}

} // namespace deft::device
